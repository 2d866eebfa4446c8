//! Tables: aligned columns, truncated to the width of a terminal; for a pipe, lines with tabs, without header and
//! truncation, for `cut -f`.

use restante_mail::terminal_text;

use super::width::{display_width, truncate};

use super::{OutputStyle, TextStyle};

/// The number of spaces between two columns.
const COLUMN_GAP: usize = 2;

/// A table. Cells may contain any text; control characters are escaped when a row is added.
pub(crate) struct Table<const N: usize> {
    columns: [Column; N],
    rows: Vec<[String; N]>,
}

/// The properties of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    name: &'static str,
    /// True if cells may be truncated when the line is too long.
    is_shrinkable: bool,
    /// The width, if it does not depend on the cells.
    fixed_width: Option<usize>,
    is_right_aligned: bool,
    style: TextStyle,
}

impl Column {
    pub(crate) const fn new(name: &'static str) -> Self {
        Self { name, is_shrinkable: false, fixed_width: None, is_right_aligned: false, style: TextStyle::Plain }
    }

    /// Allows truncation of the cells.
    pub(crate) const fn shrinkable(self) -> Self {
        Self { is_shrinkable: true, ..self }
    }

    /// Truncates and pads all cells to this width, or to that of the name if it is greater, so that tables with the same
    /// columns are aligned with each other.
    pub(crate) const fn fixed(self, width: usize) -> Self {
        Self { fixed_width: Some(width), ..self }
    }

    /// Aligns the cells to the right, for numbers.
    pub(crate) const fn right_aligned(self) -> Self {
        Self { is_right_aligned: true, ..self }
    }

    pub(crate) const fn styled(self, style: TextStyle) -> Self {
        Self { style, ..self }
    }
}

impl<const N: usize> Table<N> {
    pub(crate) fn new(header: [Column; N]) -> Self {
        Self { columns: header, rows: Vec::new() }
    }

    pub(crate) fn add_row(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| terminal_text::escape_line(&cell)));
    }

    /// Returns the lines of the table.
    pub(crate) fn lines(&self, style: &OutputStyle) -> Vec<String> {
        let Some(line_width) = style.width() else {
            return self.rows.iter().map(|row| row.join("\t")).collect();
        };
        let widths = self.column_widths(line_width);
        let header = self.columns.map(|column| column.name.to_owned());
        let header = [self.align_row(&header, &widths, |_, text| style.paint(TextStyle::Head, text))];
        let rows = self
            .rows
            .iter()
            .map(|row| self.align_row(row, &widths, |index, text| style.paint(self.columns[index].style, text)));
        header.into_iter().chain(rows).collect()
    }

    /// Returns the widths of the columns: that of the longest cell, or less if the line would be too long.
    fn column_widths(&self, line_width: usize) -> [usize; N] {
        let mut widths: [usize; N] = std::array::from_fn(|index| {
            let column = &self.columns[index];
            if let Some(width) = column.fixed_width {
                return width.max(display_width(column.name));
            }
            let cells = self.rows.iter().map(|row| display_width(&row[index]));
            cells.chain([display_width(self.columns[index].name)]).max().unwrap_or_default()
        });
        // The column names are never truncated. The remaining width is shared by the shrinkable columns.
        let min_width = |index: usize| {
            if self.columns[index].is_shrinkable { display_width(self.columns[index].name) } else { widths[index] }
        };
        let mut width_left =
            line_width.saturating_sub(N.saturating_sub(1) * COLUMN_GAP + (0..N).map(min_width).sum::<usize>());
        // Columns that need less than their share leave the rest to the others.
        let mut order: Vec<usize> = (0..N).filter(|index| self.columns[*index].is_shrinkable).collect();
        order.sort_by_key(|index| widths[*index]);
        let mut columns_left = order.len();
        for index in order {
            let min_width = display_width(self.columns[index].name);
            let extra = (widths[index] - min_width).min(width_left / columns_left);
            widths[index] = min_width + extra;
            width_left -= extra;
            columns_left -= 1;
        }
        widths
    }

    fn align_row(&self, row: &[String; N], widths: &[usize; N], style: impl Fn(usize, &str) -> String) -> String {
        let mut line = String::new();
        for (index, (cell, width)) in row.iter().zip(widths).enumerate() {
            let column = &self.columns[index];
            let is_truncated = column.is_shrinkable || column.fixed_width.is_some();
            let cell = if is_truncated { truncate(cell, *width) } else { cell.clone() };
            let padding = " ".repeat(width.saturating_sub(display_width(&cell)));
            let cell = style(index, &cell);
            let is_last = index + 1 == N;
            match column.is_right_aligned {
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
    fn columns_are_truncated_to_the_terminal() {
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
            let min_width = 2 + COLUMN_GAP + 4 + COLUMN_GAP + 7;
            assert!(lines.iter().all(|line| super::display_width(line) <= width.max(min_width)), "{width} {lines:?}");
        }
    }

    #[test]
    fn pipe_output_is_separated_by_tabs() {
        let lines = table().lines(&OutputStyle::pipe());
        assert_eq!(lines, ["1\tAnn\tYour code is here, in 日本語", "10\tevil\\u{1b}[2J\\tbob\tshort"]);
    }

    #[test]
    fn fixed_columns_do_not_depend_on_the_cells() {
        let lines = |cell: &str| {
            let mut table = Table::new([Column::new("FROM").fixed(6), Column::new("X").shrinkable()]);
            table.add_row([cell.into(), "a long text".into()]);
            table.lines(&OutputStyle::terminal(15, false))
        };
        assert_eq!(lines("Ann"), ["FROM    X", "Ann     a long…"]);
        assert_eq!(lines("Annabella"), ["FROM    X", "Annab…  a long…"]);
    }

    #[test]
    fn colors_do_not_count_as_width() {
        let mut table = Table::new([Column::new("ID").styled(TextStyle::Id), Column::new("X")]);
        table.add_row(["1".into(), "y".into()]);
        assert_eq!(
            table.lines(&OutputStyle::terminal(80, true)),
            ["\x1b[2mID\x1b[0m  \x1b[2mX\x1b[0m", "\x1b[36m1\x1b[0m   y"]
        );
    }
}
