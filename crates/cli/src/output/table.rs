//! Tables: aligned columns for a terminal, cut to its width; lines with tabs for a pipe, where nothing is cut and no head
//! is in the way of `cut -f`.

use restante_mail::terminal_text;

use super::width::{display_width, truncate};

use super::{OutputStyle, TextStyle};

/// Columns are this far apart.
const COLUMN_GAP: usize = 2;

/// A table under construction. Cells may hold anything: they are made harmless here.
pub(crate) struct Table<const N: usize> {
    columns: [Column; N],
    rows: Vec<[String; N]>,
}

/// What is true of all cells of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    name: &'static str,
    /// Whether it may be cut when the lines get too long.
    is_shrinkable: bool,
    is_right_aligned: bool,
    style: TextStyle,
}

impl Column {
    pub(crate) const fn new(name: &'static str) -> Self {
        Self { name, is_shrinkable: false, is_right_aligned: false, style: TextStyle::Plain }
    }

    /// May be cut: it shares what the others leave.
    pub(crate) const fn shrinkable(self) -> Self {
        Self { is_shrinkable: true, ..self }
    }

    /// Numbers, which stand on the right.
    pub(crate) const fn right_aligned(self) -> Self {
        Self { is_right_aligned: true, ..self }
    }

    pub(crate) const fn styled(self, style: TextStyle) -> Self {
        Self { style, ..self }
    }
}

impl<const N: usize> Table<N> {
    pub(crate) fn new(head: [Column; N]) -> Self {
        Self { columns: head, rows: Vec::new() }
    }

    pub(crate) fn add_row(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| terminal_text::escape_line(&cell)));
    }

    /// The whole table as lines.
    pub(crate) fn lines(&self, screen: &OutputStyle) -> Vec<String> {
        let Some(room) = screen.width() else {
            return self.rows.iter().map(|row| row.join("\t")).collect();
        };
        let widths = self.column_widths(room);
        let head = self.columns.map(|column| column.name.to_owned());
        let head = [self.align_row(&head, &widths, |_, text| screen.paint(TextStyle::Head, text))];
        let rows = self
            .rows
            .iter()
            .map(|row| self.align_row(row, &widths, |at, text| screen.paint(self.columns[at].style, text)));
        head.into_iter().chain(rows).collect()
    }

    /// The cells of every column: what the longest cell needs, less where that is too much for the line.
    fn column_widths(&self, room: usize) -> [usize; N] {
        let mut widths: [usize; N] = std::array::from_fn(|at| {
            let cells = self.rows.iter().map(|row| display_width(&row[at]));
            cells.chain([display_width(self.columns[at].name)]).max().unwrap_or_default()
        });
        // The names of the columns stay in any case; what else there is room for is shared by those that can be cut.
        let least =
            |at: usize| if self.columns[at].is_shrinkable { display_width(self.columns[at].name) } else { widths[at] };
        let mut room = room.saturating_sub(N.saturating_sub(1) * COLUMN_GAP + (0..N).map(least).sum::<usize>());
        // Who needs little leaves the rest of its share to those that need much.
        let mut order: Vec<usize> = (0..N).filter(|at| self.columns[*at].is_shrinkable).collect();
        order.sort_by_key(|at| widths[*at]);
        let mut sharers = order.len();
        for at in order {
            let least = display_width(self.columns[at].name);
            let more = (widths[at] - least).min(room / sharers);
            widths[at] = least + more;
            room -= more;
            sharers -= 1;
        }
        widths
    }

    fn align_row(&self, row: &[String; N], widths: &[usize; N], style: impl Fn(usize, &str) -> String) -> String {
        let mut line = String::new();
        for (at, (cell, room)) in row.iter().zip(widths).enumerate() {
            let cell = if self.columns[at].is_shrinkable { truncate(cell, *room) } else { cell.clone() };
            let padding = " ".repeat(room.saturating_sub(display_width(&cell)));
            let cell = style(at, &cell);
            let is_last = at + 1 == N;
            match self.columns[at].is_right_aligned {
                true => line.extend([padding, cell]),
                false if is_last => line.push_str(&cell),
                false => line.extend([cell, padding]),
            }
            if !is_last {
                line.push_str(&" ".repeat(COLUMN_GAP));
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table<3> {
        let mut table = Table::new([
            Column::new("N").right_aligned(),
            Column::new("FROM").shrinkable(),
            Column::new("SUBJECT").shrinkable(),
        ]);
        table.add_row(["1".into(), "Ann".into(), "Your code is here, in 日本語".into()]);
        table.add_row(["10".into(), "evil\x1b[2J\tbob".into(), "short".into()]);
        table
    }

    #[test]
    fn columns_are_cut_to_the_terminal() {
        let lines = table().lines(&OutputStyle::terminal(50, false));
        assert_eq!(
            lines,
            [
                " N  FROM                SUBJECT",
                " 1  Ann                 Your code is here, in 日…",
                "10  evil\\u{1b}[2J\\tbob  short",
            ]
        );
        for width in 0..60 {
            let lines = table().lines(&OutputStyle::terminal(width, false));
            let least = 2 + COLUMN_GAP + 4 + COLUMN_GAP + 7;
            assert!(lines.iter().all(|line| super::display_width(line) <= width.max(least)), "{width} {lines:?}");
        }
    }

    #[test]
    fn a_pipe_gets_everything_with_tabs() {
        let lines = table().lines(&OutputStyle::pipe());
        assert_eq!(lines, ["1\tAnn\tYour code is here, in 日本語", "10\tevil\\u{1b}[2J\\tbob\tshort"]);
    }

    #[test]
    fn colours_are_outside_of_what_is_measured() {
        let mut table = Table::new([Column::new("ID").styled(TextStyle::Id), Column::new("X")]);
        table.add_row(["1".into(), "y".into()]);
        assert_eq!(
            table.lines(&OutputStyle::terminal(80, true)),
            ["\x1b[2mID\x1b[0m  \x1b[2mX\x1b[0m", "\x1b[36m1\x1b[0m   y"]
        );
    }
}
