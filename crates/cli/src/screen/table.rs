//! Tables: aligned columns for a terminal, cut to its width; lines with tabs for a pipe, where nothing is cut and no head
//! is in the way of `cut -f`.

use restante_mail::terminal_text;

use super::width::{cut, width};

use super::{Screen, Style};

/// Columns are this far apart.
const GAP: usize = 2;

/// A table under construction. Cells may hold anything: they are made harmless here.
pub(crate) struct Table<const N: usize> {
    head: [Column; N],
    rows: Vec<[String; N]>,
}

/// What is true of all cells of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    name: &'static str,
    /// Whether it may be cut when the lines get too long.
    gives: bool,
    right: bool,
    style: Style,
}

impl Column {
    pub(crate) const fn new(name: &'static str) -> Self {
        Self { name, gives: false, right: false, style: Style::Plain }
    }

    /// May be cut: it shares what the others leave.
    pub(crate) const fn giving(self) -> Self {
        Self { gives: true, ..self }
    }

    /// Numbers, which stand on the right.
    pub(crate) const fn right(self) -> Self {
        Self { right: true, ..self }
    }

    pub(crate) const fn styled(self, style: Style) -> Self {
        Self { style, ..self }
    }
}

impl<const N: usize> Table<N> {
    pub(crate) fn new(head: [Column; N]) -> Self {
        Self { head, rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| terminal_text::escape_line(&cell)));
    }

    /// The whole table as lines.
    pub(crate) fn lines(&self, screen: &Screen) -> Vec<String> {
        let Some(room) = screen.width() else {
            return self.rows.iter().map(|row| row.join("\t")).collect();
        };
        let widths = self.widths(room);
        let head = self.head.map(|column| column.name.to_owned());
        let head = [self.aligned(&head, &widths, |_, text| screen.style(Style::Head, text))];
        let rows =
            self.rows.iter().map(|row| self.aligned(row, &widths, |at, text| screen.style(self.head[at].style, text)));
        head.into_iter().chain(rows).collect()
    }

    /// The cells of every column: what the longest cell needs, less where that is too much for the line.
    fn widths(&self, room: usize) -> [usize; N] {
        let mut widths: [usize; N] = std::array::from_fn(|at| {
            let cells = self.rows.iter().map(|row| width(&row[at]));
            cells.chain([width(self.head[at].name)]).max().unwrap_or_default()
        });
        // The names of the columns stay in any case; what else there is room for is shared by those that can be cut.
        let least = |at: usize| if self.head[at].gives { width(self.head[at].name) } else { widths[at] };
        let mut room = room.saturating_sub(N.saturating_sub(1) * GAP + (0..N).map(least).sum::<usize>());
        // Who needs little leaves the rest of its share to those that need much.
        let mut order: Vec<usize> = (0..N).filter(|at| self.head[*at].gives).collect();
        order.sort_by_key(|at| widths[*at]);
        let mut sharers = order.len();
        for at in order {
            let least = width(self.head[at].name);
            let more = (widths[at] - least).min(room / sharers);
            widths[at] = least + more;
            room -= more;
            sharers -= 1;
        }
        widths
    }

    fn aligned(&self, row: &[String; N], widths: &[usize; N], style: impl Fn(usize, &str) -> String) -> String {
        let mut line = String::new();
        for (at, (cell, room)) in row.iter().zip(widths).enumerate() {
            let cell = if self.head[at].gives { cut(cell, *room) } else { cell.clone() };
            let padding = " ".repeat(room.saturating_sub(width(&cell)));
            let cell = style(at, &cell);
            let is_last = at + 1 == N;
            match self.head[at].right {
                true => line.extend([padding, cell]),
                false if is_last => line.push_str(&cell),
                false => line.extend([cell, padding]),
            }
            if !is_last {
                line.push_str(&" ".repeat(GAP));
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table<3> {
        let mut table =
            Table::new([Column::new("N").right(), Column::new("FROM").giving(), Column::new("SUBJECT").giving()]);
        table.row(["1".into(), "Ann".into(), "Your code is here, in 日本語".into()]);
        table.row(["10".into(), "evil\x1b[2J\tbob".into(), "short".into()]);
        table
    }

    #[test]
    fn columns_are_cut_to_the_terminal() {
        let lines = table().lines(&Screen::terminal(50, false));
        assert_eq!(
            lines,
            [
                " N  FROM                SUBJECT",
                " 1  Ann                 Your code is here, in 日…",
                "10  evil\\u{1b}[2J\\tbob  short",
            ]
        );
        for width in 0..60 {
            let lines = table().lines(&Screen::terminal(width, false));
            let least = 2 + GAP + 4 + GAP + 7;
            assert!(lines.iter().all(|line| super::width(line) <= width.max(least)), "{width} {lines:?}");
        }
    }

    #[test]
    fn a_pipe_gets_everything_with_tabs() {
        let lines = table().lines(&Screen::pipe());
        assert_eq!(lines, ["1\tAnn\tYour code is here, in 日本語", "10\tevil\\u{1b}[2J\\tbob\tshort"]);
    }

    #[test]
    fn colours_are_outside_of_what_is_measured() {
        let mut table = Table::new([Column::new("ID").styled(Style::Id), Column::new("X")]);
        table.row(["1".into(), "y".into()]);
        assert_eq!(
            table.lines(&Screen::terminal(80, true)),
            ["\x1b[2mID\x1b[0m  \x1b[2mX\x1b[0m", "\x1b[36m1\x1b[0m   y"]
        );
    }
}
