// SPDX-License-Identifier: Apache-2.0
// Numbers and names, as people read them.

const COUNT = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

function digits(value: number): string {
	const size = Math.abs(value);
	if (size >= 99.95) return COUNT.format(value);
	return value.toFixed(size >= 9.995 ? 1 : 2);
}

function scaled(value: number, steps: [number, string][]): string {
	const size = Math.abs(value);
	for (const [step, unit] of steps) if (size >= step * 0.9995) return `${digits(value / step)} ${unit}`;
	const [step, unit] = steps[steps.length - 1] as [number, string];
	return `${digits(value / step)} ${unit}`;
}

const TIMES: [number, string][] = [[3600e9, "h"], [60e9, "min"], [1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
const BYTES: [number, string][] = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]];
// Rates are in powers of ten, as GPUs and links are sold.
const RATES: Record<string, [number, string][]> = {
	"byte/s": [[1e12, "TB/s"], [1e9, "GB/s"], [1e6, "MB/s"], [1e3, "kB/s"], [1, "B/s"]],
	"flop/s": [[1e12, "Tflop/s"], [1e9, "Gflop/s"], [1e6, "Mflop/s"], [1, "flop/s"]],
	"count/s": [[1e9, "G/s"], [1e6, "M/s"], [1e3, "k/s"], [1, "/s"]],
};

export const UNKNOWN = "unknown";

/** A value with its unit; "unknown" if there is none. */
export function amount(value: number | null | undefined, unit: string | null): string {
	if (value === null || value === undefined || !Number.isFinite(value)) return UNKNOWN;
	if (unit === "ns" || unit === "us" || unit === "ms") {
		const ns = value * (unit === "us" ? 1e3 : unit === "ms" ? 1e6 : 1);
		return ns === 0 ? "0 s" : scaled(ns, TIMES);
	}
	if (unit === "byte" || unit === "bytes" || unit === "B") return value === 0 ? "0 B" : scaled(value, BYTES);
	if (unit === "ppm") return percent(value / 1e6);
	const rates = unit ? RATES[unit] : undefined;
	if (rates) return value === 0 ? `0 ${rates[rates.length - 1]?.[1]}` : scaled(value, rates);
	const text = Number.isInteger(value) || Math.abs(value) >= 1000 ? COUNT.format(value) : digits(value);
	return unit && unit !== "count" && unit !== "1" ? `${text} ${unit}` : text;
}

export function percent(share: number | null | undefined): string {
	if (share === null || share === undefined || !Number.isFinite(share)) return UNKNOWN;
	const value = share * 100;
	return `${value !== 0 && Math.abs(value) < 0.05 ? "< 0.1" : value.toFixed(1)} %`;
}

/** A change: "+12.3 %", "−4.0 %". */
export function signedPercent(share: number | null | undefined): string {
	if (share === null || share === undefined || !Number.isFinite(share)) return UNKNOWN;
	const words = percent(Math.abs(share));
	return words.startsWith("<") ? words : `${share > 0 ? "+" : share < 0 ? "−" : ""}${words}`;
}

/** A difference with its unit: "+1.20 ms". */
export function signedAmount(value: number | null | undefined, unit: string | null): string {
	if (value === null || value === undefined || !Number.isFinite(value)) return UNKNOWN;
	return `${value > 0 ? "+" : value < 0 ? "−" : ""}${amount(Math.abs(value), unit)}`;
}

/** Characters that would turn the direction of what follows, or that are not seen, become \u{…}: a name says what it is. */
export function visible(name: string): string {
	// eslint-disable-next-line no-control-regex
	return name.replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
		(letter) => `\\u{${letter.codePointAt(0)?.toString(16)}}`);
}

/** A C++ signature without arguments, and with the first template arguments only: void at::native::f<4, G<H<float>>>(int) becomes f<4, G<…>>. */
export function short(name: string): string {
	if (name.length < 28 || !/<|\)( const)?$/.test(name)) return name;
	let out = "", depth = 0;
	for (const letter of name.replace(/^(void|static|inline) /, "").replaceAll("(anonymous namespace)::", "").replace(/\b(at::native|at|std|cutlass)::/g, "")) {
		if (letter === "(" && depth === 0 && out) break;
		if (letter === "(" || (letter === "<" && depth > 0)) {
			if (depth++ === 1) out += `${letter}…`;
		} else if (letter === "<") {
			depth++;
			out += letter;
		} else if (depth > 0 && (letter === ">" || letter === ")")) {
			if (--depth <= 1) out += letter;
		} else if (depth <= 1) out += letter;
	}
	return out.trim().slice(0, 120) || name;
}

export function fileName(path: string): string {
	return path.slice(path.lastIndexOf("/") + 1);
}
