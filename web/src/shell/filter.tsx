// SPDX-License-Identifier: Apache-2.0
// The filter of a table's rows: words that a row must have.
import { useApp } from "../state/app";

export function Filter() {
	const app = useApp();
	return <input type="search" aria-label="Filter the rows by words" placeholder="Filter (/)" value={app.state.values["filter"] ?? ""}
		onInput={(event) => app.set({ filter: event.currentTarget.value })}
		onKeyDown={(event) => event.key === "Escape" && app.set({ filter: null })} />;
}
