// SPDX-License-Identifier: Apache-2.0
// The HTML around the bundle. Only the two files of the extension may run, by a nonce; the page can reach no server.

export function pageHtml(nonce: string, source: string, script: string, style: string): string {
	const policy = `default-src 'none'; script-src 'nonce-${nonce}'; style-src ${source}; img-src data:; base-uri 'none'; form-action 'none'`;
	return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>plumb</title>
<link rel="stylesheet" href="${style}">
</head>
<body>
<div id="plumb"></div>
<script nonce="${nonce}" src="${script}"></script>
</body>
</html>
`;
}
