// SPDX-License-Identifier: Apache-2.0
// A menu at a place of the window, for the pointer and for keys.
import { useLayoutEffect, useRef } from "preact/hooks";

export interface MenuItem {
	title: string;
	run: () => void;
}

export function Menu({ x, y, items, onClose }: { x: number; y: number; items: MenuItem[]; onClose: () => void }) {
	const list = useRef<HTMLDivElement>(null);
	useLayoutEffect(() => {
		const at = list.current;
		if (!at) return;
		at.style.left = `${Math.max(4, Math.min(x, innerWidth - at.offsetWidth - 4))}px`;
		at.style.top = `${Math.max(4, Math.min(y, innerHeight - at.offsetHeight - 4))}px`;
		at.querySelector("button")?.focus();
		const away = (event: PointerEvent) => !at.contains(event.target as Node) && onClose();
		addEventListener("pointerdown", away, true);
		return () => removeEventListener("pointerdown", away, true);
	}, [x, y]);
	const key = (event: KeyboardEvent) => {
		const buttons = [...(list.current?.querySelectorAll("button") ?? [])], at = buttons.indexOf(document.activeElement as HTMLButtonElement);
		const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
		if (step) buttons[(at + step + buttons.length) % buttons.length]?.focus();
		else if (event.key === "Escape" || event.key === "Tab") onClose();
		else return;
		event.preventDefault();
		event.stopPropagation();
	};
	return (
		<div class="menu" role="menu" aria-label="What to do with the box" ref={list} onKeyDown={key}>
			{items.map((item) => <button key={item.title} type="button" role="menuitem" onClick={() => { onClose(); item.run(); }}>{item.title}</button>)}
		</div>
	);
}
