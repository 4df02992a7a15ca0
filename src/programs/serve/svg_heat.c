#include "programs/serve/svg.h"

#include "programs/serve/html.h"

enum level { UNKNOWN, IDLE, HELD, ONE, FEW, MANY, CROWD };

static const char *const classes[] = {"", "idle", "h0", "h1", "h2", "h3", "h4"};

static enum level level_of(const hf__heat_cell *cell)
{
    if (cell->samples == 0)
        return UNKNOWN;
    if (cell->waiters == 0)
        return cell->held > 0 ? HELD : IDLE;
    return cell->waiters == 1 ? ONE : cell->waiters < 5 ? FEW : cell->waiters < 10 ? MANY : CROWD;
}

void hf__svg_heat(hf__buf *out, const hf__heat_row *row, size_t columns, const char *label)
{
    hf__html(out,
             "<svg class=\"heat\" role=\"img\" aria-label=\"%s\" viewBox=\"0 0 %zu 10\" "
             "preserveAspectRatio=\"none\" shape-rendering=\"crispEdges\">",
             label, columns);
    for (size_t i = 0; i < columns;) {
        size_t start = i;
        enum level level = level_of(&row->cells[i]);
        while (i < columns && level_of(&row->cells[i]) == level)
            i++;
        if (level != UNKNOWN)
            hf__html(out, "<rect class=\"%s\" x=\"%zu\" width=\"%zu\" height=\"10\"/>",
                     classes[level], start, i - start);
    }
    hf__buf_puts(out, "</svg>");
}
