# SPDX-License-Identifier: Apache-2.0
"""Figures of bench/levels.py as SVG: lines, and bars that are stacked. With the standard library alone."""
import html
import math

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 300, 62, 150, 34, 46
COLOURS = "#3366aa", "#dd7722", "#339966", "#aa3355", "#777777", "#8855bb", "#bbaa22", "#22aabb"


def _text(x, y, text, anchor="middle", size=11, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{more}>{html.escape(str(text))}</text>'


def _frame(title, across, up, body):
    middle = (LEFT + WIDTH - RIGHT) / 2
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="sans-serif" fill="#222222">', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        _text(LEFT, 18, title, "start", 13), _text(middle, HEIGHT - 8, across),
        _text(14, (TOP + HEIGHT - BOTTOM) / 2, up, more=f' transform="rotate(-90 14 {(TOP + HEIGHT - BOTTOM) / 2:.1f})"'),
        *body, "</svg>", ""])


def _legend(names):
    lines = []
    for i, name in enumerate(names):
        y = TOP + 8 + 16 * i
        lines.append(f'<rect x="{WIDTH - RIGHT + 12}" y="{y - 8}" width="10" height="10" fill="{COLOURS[i % len(COLOURS)]}"/>')
        lines.append(_text(WIDTH - RIGHT + 27, y + 1, name, "start", 10))
    return lines


def _short(value):
    return f"{value:,.0f}" if value >= 10 else f"{value:.3g}"


def _steps(most):
    """Round numbers from 0 to MOST or more."""
    step = 10 ** math.floor(math.log10(most / 4)) if most > 0 else 1
    step = next(step * factor for factor in (1, 2, 2.5, 5, 10) if most / (step * factor) <= 5)
    return [step * i for i in range(math.ceil(most / step) + 1)]


def lines(title, across, up, xs, series, logarithmic=False):
    """SERIES {name: values}, one for each of XS, None where it is not known. XS are evenly spaced: sizes that double."""
    known = [value for values in series.values() for value in values if value is not None]
    if not known:
        return None
    if logarithmic:
        low, high = math.floor(math.log10(min(known))), math.ceil(math.log10(max(known)))
        high = max(high, low + 1)
        ticks = [10.0 ** power for power in range(low, high + 1)]
        place = lambda value: (math.log10(value) - low) / (high - low)  # noqa: E731
    else:
        ticks = _steps(max(known))
        place = lambda value: value / ticks[-1]  # noqa: E731
    at_x = lambda i: LEFT + (WIDTH - LEFT - RIGHT) * ((i + 0.5) / len(xs))  # noqa: E731
    at_y = lambda value: HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * place(value)  # noqa: E731
    body = []
    for tick in ticks:
        body.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at_y(tick):.1f}" y2="{at_y(tick):.1f}" stroke="#dddddd"/>')
        body.append(_text(LEFT - 6, at_y(tick) + 4, _short(tick), "end", 10))
    body += [_text(at_x(i), HEIGHT - BOTTOM + 16, x, size=10) for i, x in enumerate(xs)]
    for i, values in enumerate(series.values()):
        points = [(at_x(k), at_y(value)) for k, value in enumerate(values) if value is not None]
        colour = COLOURS[i % len(COLOURS)]
        body.append('<polyline fill="none" stroke="%s" stroke-width="2" points="%s"/>' % (
            colour, " ".join(f"{x:.1f},{y:.1f}" for x, y in points)))
        body += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
    return _frame(title, across, up, body + _legend(series))


def bars(title, across, up, xs, series, labels=None):
    """The values of SERIES {name: values} on top of each other, for each of XS. LABELS: which of XS have their name."""
    sums = [sum(values[i] or 0 for values in series.values()) for i in range(len(xs))]
    if not any(sums):
        return None
    ticks = _steps(max(sums))
    wide = (WIDTH - LEFT - RIGHT) / len(xs)
    high = (HEIGHT - TOP - BOTTOM) / ticks[-1]
    body = []
    for tick in ticks:
        y = HEIGHT - BOTTOM - high * tick
        body.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#dddddd"/>')
        body.append(_text(LEFT - 6, y + 4, _short(tick), "end", 10))
    for i, x in enumerate(xs):
        top = HEIGHT - BOTTOM
        for k, values in enumerate(series.values()):
            tall = high * (values[i] or 0)
            top -= tall
            if tall >= 0.05:
                body.append(f'<rect x="{LEFT + wide * (i + 0.1):.1f}" y="{top:.1f}" width="{wide * 0.8:.1f}" height="{tall:.1f}" '
                            f'fill="{COLOURS[k % len(COLOURS)]}"/>')
        if labels is None or x in labels:
            body.append(_text(LEFT + wide * (i + 0.5), HEIGHT - BOTTOM + 16, x, size=10))
    return _frame(title, across, up, body + _legend(series))
