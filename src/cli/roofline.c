/* SPDX-License-Identifier: Apache-2.0 */
/* A roofline as SVG: throughput over arithmetic intensity, both logarithmic, under what the GPU can do. */
#include <math.h>
#include <string.h>

#include "cli/tables_print.h"

enum { WIDTH = 720, HEIGHT = 480, LEFT = 70, RIGHT = 20, TOP = 40, BOTTOM = 50 };

struct range {
	double low, high; /* powers of ten */
};

struct drawing {
	const struct plumb_answer *answer;
	uint32_t name, intensity, throughput; /* columns */
	struct range x, y;
	double peak, bandwidth; /* Gflop/s, GB/s */
};

static double
value_at(const struct drawing *d, uint32_t row, uint32_t column)
{
	const struct plumb_cell *cell =
		&d->answer->cells[(size_t)row * d->answer->column_count + column];

	return cell->kind == PLUMB_CELL_NUMBER && cell->number > 0 ? cell->number : NAN;
}

static bool
point_at(const struct drawing *d, uint32_t row, double *x, double *y)
{
	*x = value_at(d, row, d->intensity);
	*y = value_at(d, row, d->throughput);
	return !isnan(*x) && !isnan(*y);
}

static void
widen(struct range *range, double value)
{
	range->low = fmin(range->low, floor(log10(value)));
	range->high = fmax(range->high, ceil(log10(value)));
}

static double
place_x(const struct drawing *d, double value)
{
	return LEFT + (log10(value) - d->x.low) / (d->x.high - d->x.low) * (WIDTH - LEFT - RIGHT);
}

static double
place_y(const struct drawing *d, double value)
{
	return HEIGHT - BOTTOM -
	       (log10(value) - d->y.low) / (d->y.high - d->y.low) * (HEIGHT - TOP - BOTTOM);
}

/* Text that is safe in XML. */
static void
put_text(FILE *out, const char *text)
{
	for (; text && *text; text++) {
		if (*text == '&' || *text == '<' || *text == '>' || *text == '"')
			fprintf(out, "&#%d;", *text);
		else
			fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
	}
}

static void
put_axes(const struct drawing *d, FILE *out)
{
	for (double e = d->x.low; e <= d->x.high; e++)
		fprintf(out,
		        "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" class=\"grid\"/>"
		        "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n",
		        place_x(d, pow(10, e)), place_x(d, pow(10, e)), TOP, HEIGHT - BOTTOM,
		        place_x(d, pow(10, e)), HEIGHT - BOTTOM + 16, pow(10, e));
	for (double e = d->y.low; e <= d->y.high; e++)
		fprintf(out,
		        "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" class=\"grid\"/>"
		        "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
		        LEFT, WIDTH - RIGHT, place_y(d, pow(10, e)), place_y(d, pow(10, e)),
		        LEFT - 6, place_y(d, pow(10, e)) + 4, pow(10, e));
	fprintf(out,
	        "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">arithmetic intensity "
	        "(flop/byte)</text>\n",
	        (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12);
	fprintf(out,
	        "<text transform=\"translate(16 %d) rotate(-90)\" "
	        "text-anchor=\"middle\">throughput (Gflop/s)</text>\n",
	        (TOP + HEIGHT - BOTTOM) / 2);
}

static void
put_roof(const struct drawing *d, FILE *out)
{
	double ridge = d->peak / d->bandwidth, left = pow(10, d->x.low), right = pow(10, d->x.high);
	double from = fmax(left, pow(10, d->y.low) / d->bandwidth);

	fprintf(out, "<polyline class=\"roof\" points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f\"/>\n",
	        place_x(d, from), place_y(d, from * d->bandwidth), place_x(d, ridge),
	        place_y(d, d->peak), place_x(d, right), place_y(d, d->peak));
}

static uint32_t
column_of(const struct plumb_answer *answer, const char *part)
{
	for (uint32_t c = 0; c < answer->column_count; c++)
		if (strstr(answer->columns[c].name, part))
			return c;
	return 0;
}

static uint32_t
measure(struct drawing *d)
{
	uint32_t points = 0;
	double x, y;

	d->x = (struct range){ INFINITY, -INFINITY };
	d->y = d->x;
	for (uint32_t r = 0; r < d->answer->row_count; r++) {
		if (!point_at(d, r, &x, &y))
			continue;
		points++;
		widen(&d->x, x);
		widen(&d->y, y);
	}
	widen(&d->x, d->peak / d->bandwidth / 10);
	widen(&d->x, d->peak / d->bandwidth * 10);
	widen(&d->y, d->peak / 10);
	widen(&d->y, d->peak);
	return points;
}

uint32_t
plumb_roofline_svg(const struct plumb_answer *answer, const struct plumb_tables_input *input,
                   const char *device, FILE *out)
{
	struct drawing d = { .answer = answer,
		             .intensity = column_of(answer, "_arithmetic_intensity"),
		             .throughput = column_of(answer, "_arithmetic_throughput"),
		             .peak = input->peak_gflops,
		             .bandwidth = input->bandwidth / 1e9 };
	bool kernels = !strcmp(answer->kind->id, "A9");
	uint32_t points;
	double x, y;

	d.name = column_of(answer, kernels ? "kernel_name" : "layer_name");
	if (!(d.peak > 0) || !(d.bandwidth > 0) || !(points = measure(&d)))
		return 0;
	fprintf(out,
	        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
	        "font-family=\"sans-serif\" font-size=\"11\">\n"
	        "<style>.grid{stroke:#ddd}.roof{fill:none;stroke:#c33;stroke-width:2}"
	        "circle{fill:#369;fill-opacity:.6}</style>\n"
	        "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
	        "<text x=\"%d\" y=\"22\" font-size=\"14\">",
	        WIDTH, HEIGHT, LEFT);
	put_text(out, answer->kind->title);
	fputs(", ", out);
	put_text(out, device ? device : "GPU");
	fprintf(out, ": %g Gflop/s, %g GB/s</text>\n", d.peak, d.bandwidth);
	put_axes(&d, out);
	put_roof(&d, out);
	for (uint32_t r = 0; r < answer->row_count; r++) {
		if (!point_at(&d, r, &x, &y))
			continue;
		fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\"><title>", place_x(&d, x),
		        place_y(&d, y));
		put_text(out, answer->cells[(size_t)r * answer->column_count + d.name].text);
		fprintf(out, ": %.4g flop/byte, %.4g Gflop/s</title></circle>\n", x, y);
	}
	fputs("</svg>\n", out);
	return points;
}
