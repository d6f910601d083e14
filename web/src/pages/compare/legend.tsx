// SPDX-License-Identifier: Apache-2.0
// What the colours of a flame graph of two profiles mean, for somebody who has never seen one.
import { CHANGE_STEPS, PALETTES } from "../../draw/colours";
import { useApp } from "../../state/app";

const OF: Record<string, string> = { after: "takes after", before: "took before", either: "takes before or after, whichever is more" };

export function Legend({ width }: { width: string }) {
	const palette = PALETTES[useApp().look];
	const step = (index: number) => `${Math.round((CHANGE_STEPS[index] as number) * 100)} %`;
	const words = (index: number) => {
		const away = Math.abs(index - 4), way = index < 4 ? "less" : "more";
		return away === 0 ? `changed by less than ${step(0)}` : `took ${step(away - 1)}${away < 4 ? ` to ${step(away)}` : " or more"} ${way}`;
	};
	return (
		<div class="changes">
			<span>less than before</span>
			<span class="scale" role="img" aria-label={`Colours from blue, ${words(0)}, over grey, ${words(4)}, to orange, ${words(8)}`}>
				{palette.changes.map((colour, index) => <span key={colour} class="swatch" title={words(index)} style={{ background: colour }} />)}
			</span>
			<span>more than before</span>
			<span><span class="swatch striped" />only in one of the two</span>
			<details>
				<summary>How to read this</summary>
				<p>Each box is a function, an operator or a kernel. The box above it called it. The wider a box, the more it {OF[width]}, with everything below it.</p>
				<p>Orange boxes take more than before, blue ones less. The stronger the colour, the larger the part of the box that changed. A grey
					box has changed by less than {step(0)}. Striped boxes are call paths that only one of the two profiles has.</p>
				<p>To find what made a program slower, follow the orange boxes down, to the last one that is wide. The rows below say how sure a change is.</p>
			</details>
		</div>
	);
}
