/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A roofline as SVG: throughput over arithmetic intensity, both logarithmic, under what the GPU can
 * do. What takes most time has a number, and its name below, so that names do not lie upon each
 * other. It has its own colours for light and dark pages, and shapes beside the colours.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "view/tables.h"

#define DRAWN "<!-- plumb: roofline -->" /* by this a picture of ours is known */

enum { WIDTH = 760, HEIGHT = 440, LEFT = 70, RIGHT = 24, TOP = 44, BOTTOM = 52 };
enum { NAMED = 5, NAME_LENGTH = 60, LINE = 17 };

struct range {
	double low, high; /* powers of ten */
};

struct point {
	uint32_t row;
	double x, y, us;
	double label_x, label_y; /* where its number stands */
	bool bound;              /* by memory */
};

struct drawing {
	const struct plumb_answer *answer;
	uint32_t name, intensity, throughput; /* columns */
	struct range x, y;
	double peak, bandwidth; /* Gflop/s, GB/s */
	struct point *points;   /* the longest first */
	uint32_t count;
};

static double
value_at(const struct drawing *d, uint32_t row, uint32_t column)
{
	const struct plumb_answer_cell *cell = plumb_answer_at(d->answer, row, column);

	return cell->type == PLUMB_ANSWER_NUMBER && cell->number > 0 ? cell->number : NAN;
}

static void
widen_range(struct range *range, double value)
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

/* Writes text that is safe in XML. Of more than LENGTH characters, it writes the beginning and the
 * end. */
static void
put_text(FILE *out, const char *text, int length)
{
	int count = 0, n = 0, tail = length / 4;

	for (const char *at = text; at && *at; at++)
		count += (*at & 0xc0) != 0x80;
	for (; text && *text; text++) {
		n += (*text & 0xc0) != 0x80;
		if (count > length && n > length - tail && n <= count - tail) {
			if (n == length - tail + 1 && (*text & 0xc0) != 0x80)
				fputs("…", out);
			continue;
		}
		if (*text == '&' || *text == '<' || *text == '>' || *text == '"')
			fprintf(out, "&#%d;", *text);
		else
			fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
	}
}

/* ---- points ---- */

static uint32_t
column_of(const struct plumb_answer *answer, const char *part)
{
	for (uint32_t c = 0; c < answer->column_count; c++)
		if (strstr(answer->columns[c].name, part))
			return c;
	return 0;
}

static int
by_time(const void *a, const void *b)
{
	const struct point *x = a, *y = b;

	if (x->us != y->us)
		return x->us < y->us ? 1 : -1;
	return (x->row > y->row) - (x->row < y->row);
}

/* Reads the points and how far the axes go. Without memory there are none. */
static void
find_points(struct drawing *d, const struct plumb_layers *layers, bool kernels)
{
	d->x = d->y = (struct range){ INFINITY, -INFINITY };
	d->points = calloc(d->answer->row_count + 1u, sizeof *d->points);
	for (uint32_t r = 0; d->points && r < d->answer->row_count; r++) {
		double x = value_at(d, r, d->intensity), y = value_at(d, r, d->throughput);
		if (isnan(x) || isnan(y))
			continue;
		d->points[d->count++] = (struct point){
			.row = r,
			.x = x,
			.y = y,
			.us = kernels ? layers->kernels[r].total : layers->items[r].device_us,
			.bound = x < d->peak / d->bandwidth,
		};
		widen_range(&d->x, x);
		widen_range(&d->y, y);
	}
	if (d->count)
		qsort(d->points, d->count, sizeof *d->points, by_time);
	widen_range(&d->x, d->peak / d->bandwidth / 10);
	widen_range(&d->x, d->peak / d->bandwidth * 10);
	widen_range(&d->y, d->peak / 10);
	widen_range(&d->y, d->peak * 1.2);
}

static double
radius_of(const struct drawing *d, const struct point *point)
{
	return 3 + 9 * sqrt(d->points[0].us > 0 ? fmax(point->us, 0) / d->points[0].us : 0);
}

/* Numbers are at the upper right of their points, and higher if another number is there. */
static void
place_labels(struct drawing *d)
{
	for (uint32_t i = 0; i < d->count && i < NAMED; i++) {
		struct point *point = &d->points[i];
		point->label_x = fmin(place_x(d, point->x) + radius_of(d, point) * 0.7 + 3,
		                      WIDTH - RIGHT - 10);
		point->label_y = place_y(d, point->y) - radius_of(d, point) * 0.7 - 2;
		for (uint32_t j = 0; j < i; j++) {
			const struct point *other = &d->points[j];
			if (fabs(other->label_x - point->label_x) >= 11 ||
			    fabs(other->label_y - point->label_y) >= 12)
				continue;
			point->label_y = other->label_y - 12;
			j = UINT32_MAX; /* from the start again: it may meet one that was passed */
		}
	}
}

/* ---- drawing ---- */

/* A power of ten, as people write it. */
static void
put_power(FILE *out, double e)
{
	if (e >= -2 && e <= 3)
		fprintf(out, "%g</text>\n", pow(10, e));
	else
		fprintf(out, "10<tspan dy=\"-5\" font-size=\"9\">%g</tspan></text>\n", e);
}

static void
put_axes(const struct drawing *d, FILE *out)
{
	for (double e = d->x.low; e <= d->x.high; e++) {
		double x = place_x(d, pow(10, e));
		fprintf(out,
		        "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" class=\"grid\"/>"
		        "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">",
		        x, x, TOP, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 17);
		put_power(out, e);
	}
	for (double e = d->y.low; e <= d->y.high; e++) {
		double y = place_y(d, pow(10, e));
		fprintf(out,
		        "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" class=\"grid\"/>"
		        "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">",
		        LEFT, WIDTH - RIGHT, y, y, LEFT - 7, y + 4);
		put_power(out, e);
	}
	fprintf(out,
	        "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">arithmetic intensity "
	        "(flop/byte)</text>\n"
	        "<text transform=\"translate(18 %d) rotate(-90)\" "
	        "text-anchor=\"middle\">throughput (Gflop/s)</text>\n",
	        (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, (TOP + HEIGHT - BOTTOM) / 2);
}

/* Draws the roof, its peaks, and where it bends. */
static void
put_roof(const struct drawing *d, FILE *out)
{
	double ridge = d->peak / d->bandwidth, left = pow(10, d->x.low), right = pow(10, d->x.high);
	double from = fmax(left, pow(10, d->y.low) / d->bandwidth);
	double x = place_x(d, ridge), y = place_y(d, d->peak);
	double slope = atan2(place_y(d, from * d->bandwidth) - y, x - place_x(d, from));
	double middle = sqrt(from * ridge);

	fprintf(out,
	        "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%d\" class=\"ridge\"/>\n"
	        "<polyline class=\"roof\" points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f\"/>\n",
	        x, x, y, HEIGHT - BOTTOM, place_x(d, from), place_y(d, from * d->bandwidth), x, y,
	        place_x(d, right), y);
	fprintf(out,
	        "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\" class=\"of\">%.0f Gflop/s</text>\n"
	        "<text transform=\"translate(%.1f %.1f) rotate(%.1f)\" text-anchor=\"middle\" "
	        "class=\"of\">%g GB/s</text>\n"
	        "<text x=\"%.1f\" y=\"%d\" class=\"of\">%.4g flop/byte</text>\n",
	        WIDTH - RIGHT - 4, y - 7, d->peak, place_x(d, middle) - 7 * sin(slope),
	        place_y(d, middle * d->bandwidth) - 7 * cos(slope), -slope * 57.29578, d->bandwidth,
	        x + 5, HEIGHT - BOTTOM - 6, ridge);
}

static void
put_shape(FILE *out, bool bound, double x, double y, double r)
{
	if (bound)
		fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" class=\"memory\">", x, y,
		        r);
	else
		fprintf(out,
		        "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
		        "class=\"arithmetic\">",
		        x - r * 0.89, y - r * 0.89, r * 1.78, r * 1.78);
}

static const char *
name_of(const struct drawing *d, const struct point *point)
{
	return d->answer->cells[(size_t)point->row * d->answer->column_count + d->name].text;
}

/* How many digits come after the decimal point: four digits in all, and never a power of ten. */
static int
count_decimals(double number)
{
	double before = number > 0 ? floor(log10(number)) : 0;

	return before >= 3 ? 0 : before < -6 ? 9 : 3 - (int)before;
}

static void
put_amounts(FILE *out, const struct point *point)
{
	fprintf(out, ": %.*f flop/byte, %.*f Gflop/s", count_decimals(point->x), point->x,
	        count_decimals(point->y), point->y);
}

/* The points with the longest time are below the others. */
static void
put_points(struct drawing *d, FILE *out)
{
	for (uint32_t i = 0; i < d->count; i++) {
		const struct point *point = &d->points[i];
		put_shape(out, point->bound, place_x(d, point->x), place_y(d, point->y),
		          radius_of(d, point));
		fputs("<title>", out);
		put_text(out, name_of(d, point), 1000);
		put_amounts(out, point);
		fprintf(out, ", %.*f us in a run</title></%s>\n", count_decimals(point->us),
		        point->us, point->bound ? "circle" : "rect");
	}
	place_labels(d);
	for (uint32_t i = 0; i < d->count && i < NAMED; i++)
		fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"number\">%u</text>\n",
		        d->points[i].label_x, d->points[i].label_y, i + 1);
}

static void
put_legend(const struct drawing *d, FILE *out)
{
	static const struct {
		int at;
		const char *text;
	} items[] = { { LEFT + 6, "memory-bound" }, { LEFT + 148, "compute-bound" } };
	int y = HEIGHT + 8;

	for (int i = 0; i < 2; i++) {
		put_shape(out, i == 0, items[i].at, y - 4, 5);
		fprintf(out, "</%s><text x=\"%d\" y=\"%d\">%s</text>\n", i ? "rect" : "circle",
		        items[i].at + 11, y, items[i].text);
	}
	fprintf(out, "<text x=\"%d\" y=\"%d\">area: time in a run; numbers: rank by time</text>\n",
	        LEFT + 318, y);
	for (uint32_t i = 0; i < d->count && i < NAMED; i++) {
		y += LINE;
		fprintf(out,
		        "<text x=\"%d\" y=\"%d\" class=\"number\">%u</text><text x=\"%d\" "
		        "y=\"%d\">",
		        LEFT + 2, y, i + 1, LEFT + 17, y);
		put_text(out, name_of(d, &d->points[i]), NAME_LENGTH);
		put_amounts(out, &d->points[i]);
		fputs("</text>\n", out);
	}
}

static void
put_head(const struct drawing *d, const char *device, FILE *out)
{
	uint32_t named = d->count < NAMED ? d->count : NAMED;

	fprintf(out,
	        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %u\" width=\"%d\" "
	        "height=\"%u\" font-family=\"sans-serif\" font-size=\"12\">\n" DRAWN "\n"
	        "<style>text{fill:#333}.page{fill:#fff}.grid{stroke:#e2e2e2}"
	        ".roof{fill:none;stroke:#555;stroke-width:2}.ridge{stroke:#999;stroke-dasharray:3 "
	        "3}"
	        ".of{fill:#666;font-size:11px}.number{font-weight:bold}"
	        ".memory{fill:#0072b2;fill-opacity:.6;stroke:#0072b2}"
	        ".arithmetic{fill:#d55e00;fill-opacity:.6;stroke:#d55e00}"
	        "@media(prefers-color-scheme:dark){text{fill:#ddd}.page{fill:#1c1c1c}"
	        ".grid{stroke:#3a3a3a}.roof{stroke:#bbb}.ridge{stroke:#777}.of{fill:#aaa}"
	        ".memory{fill:#56b4e9;stroke:#56b4e9}.arithmetic{fill:#e69f00;stroke:#e69f00}}"
	        "</style>\n<rect width=\"100%%\" height=\"100%%\" class=\"page\"/>\n"
	        "<text x=\"%d\" y=\"26\" font-size=\"15\">",
	        WIDTH, HEIGHT + 22 + named * LINE, WIDTH, HEIGHT + 22 + named * LINE, LEFT);
	put_text(out, d->answer->title, 60);
	fputs(", ", out);
	put_text(out, device ? device : "GPU", 60);
	fputs("</text>\n", out);
}

uint32_t
plumb_roofline_svg(const struct plumb_tables *tables, const struct plumb_answer *answer, FILE *out)
{
	const struct plumb_tables_input *input = &tables->input;
	struct drawing d = { .answer = answer,
		             .intensity = column_of(answer, "_arithmetic_intensity"),
		             .throughput = column_of(answer, "_arithmetic_throughput"),
		             .peak = input->peak_gflops,
		             .bandwidth = input->bandwidth / 1e9 };
	bool kernels = !strcmp(answer->id, "A9");

	d.name = column_of(answer, kernels ? "kernel_name" : "layer_name");
	if (d.peak > 0 && d.bandwidth > 0)
		find_points(&d, input->layers, kernels);
	if (d.count) {
		put_head(&d, plumb_tables_device(tables), out);
		put_axes(&d, out);
		put_roof(&d, out);
		put_points(&d, out);
		put_legend(&d, out);
		fputs("</svg>\n", out);
	}
	free(d.points);
	return d.count;
}

bool
plumb_roofline_drew(const char *path)
{
	char head[1024];
	FILE *in = fopen(path, "re");
	size_t bytes = in ? fread(head, 1, sizeof head, in) : 0;

	if (in)
		fclose(in);
	return memmem(head, bytes, DRAWN, strlen(DRAWN)) != NULL;
}
