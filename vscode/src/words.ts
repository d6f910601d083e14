// SPDX-License-Identifier: Apache-2.0
// Numbers and names as text.

const digits = (value: number) => (value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2));

export function percent(share: number | null): string {
	return share === null || !Number.isFinite(share) ? "unknown" : `${(share * 100).toFixed(1)} %`;
}

export function amount(value: number | null, unit: string | null): string {
	if (value === null || !Number.isFinite(value)) return "unknown";
	const scaled = (steps: [number, string][]) => {
		const [size, name] = steps.find(([size]) => Math.abs(value) >= size) ?? steps.at(-1) as [number, string];
		return `${size === 1 ? value : digits(value / size)} ${name}`.trim();
	};
	if (unit === "ns") return scaled([[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]]);
	if (unit === "byte") return scaled([[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]]);
	const text = scaled([[1e9, "G"], [1e6, "M"], [1e4, "k"], [1, ""]]);
	return unit && unit !== "count" ? `${text} ${unit}` : text;
}

/** Names come from other people's files: what hides or turns text is shown as an escape. */
export function visible(text: string): string {
	return text.replace(/[\0-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb]/gu,
		(letter) => `\\u${(letter.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`);
}
