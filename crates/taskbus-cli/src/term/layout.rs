//! Plain tables that fit a terminal: widths by what is seen (CJK is two columns wide), one column gives way.
//!
//! Cells are made safe here ([`super::safe`]), so that nothing reaches a table unescaped.

use std::borrow::Cow;

use owo_colors::{OwoColorize as _, Style};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::safe::display_safe;

const GAP: &str = "  ";
const FLEXIBLE_MIN: usize = 8;

/// A text in a style.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A cell of its own style; the text is made safe.
    pub(crate) fn new(text: impl AsRef<str>, style: Style) -> Self {
        Self { text: display_safe(text.as_ref()).into_owned(), style }
    }

    /// A cell that keeps the terminal's colours.
    pub(crate) fn plain(text: impl AsRef<str>) -> Self {
        Self::new(text, Style::new())
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::plain(text)
    }
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    title: &'static str,
    align: Align,
    gives_way: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Align {
    Left,
    Right,
}

impl Column {
    /// Text.
    pub(crate) const fn left(title: &'static str) -> Self {
        Self { title, align: Align::Left, gives_way: false }
    }

    /// Numbers.
    pub(crate) const fn right(title: &'static str) -> Self {
        Self { title, align: Align::Right, gives_way: false }
    }

    /// Text that is cut when the terminal is narrow.
    pub(crate) const fn flexible(title: &'static str) -> Self {
        Self { title, align: Align::Left, gives_way: true }
    }
}

/// A table.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// An empty table.
    pub(crate) fn new(columns: impl Into<Vec<Column>>) -> Self {
        Self { columns: columns.into(), rows: Vec::new() }
    }

    /// Adds a row; it has a cell for each column.
    pub(crate) fn row(&mut self, cells: impl Into<Vec<Cell>>) {
        let cells = cells.into();
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    /// The table as lines, within `width` columns if that is given.
    pub(crate) fn render(&self, width: Option<usize>) -> String {
        let shown = self.shown();
        let widths = self.widths(&shown, width);
        let mut text = String::new();
        if shown.iter().any(|column| !self.columns[*column].title.is_empty()) {
            let titles: Vec<Cell> = self.columns.iter().map(|c| Cell::new(c.title, Style::new().dimmed())).collect();
            self.line(&titles, &shown, &widths, &mut text);
        }
        for row in &self.rows {
            self.line(row, &shown, &widths, &mut text);
        }
        text
    }

    /// Columns with something in them.
    fn shown(&self) -> Vec<usize> {
        let filled = |column: &usize| self.rows.iter().any(|row| !row[*column].text.is_empty());
        (0..self.columns.len()).filter(filled).collect()
    }

    fn widths(&self, shown: &[usize], limit: Option<usize>) -> Vec<usize> {
        let natural = |column: &usize| {
            let cells = self.rows.iter().map(|row| row[*column].text.width());
            cells.chain([self.columns[*column].title.width()]).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = shown.iter().map(natural).collect();
        if let Some(limit) = limit {
            self.fit(&mut widths, shown, limit);
        }
        widths
    }

    /// Takes what is too much from the flexible columns, always from the widest, then from the last column.
    fn fit(&self, widths: &mut [usize], shown: &[usize], limit: usize) {
        let gaps = GAP.len() * shown.len().saturating_sub(1);
        let over = |widths: &[usize]| widths.iter().sum::<usize>() + gaps > limit;
        for gives_way in [true, false] {
            let some: Vec<usize> =
                (0..shown.len()).filter(|at| self.columns[shown[*at]].gives_way == gives_way).collect();
            while over(widths) {
                let widest = some.iter().copied().filter(|at| widths[*at] > FLEXIBLE_MIN).max_by_key(|at| widths[*at]);
                match widest {
                    Some(at) => widths[at] -= 1,
                    None => break,
                }
            }
        }
    }

    fn line(&self, row: &[Cell], shown: &[usize], widths: &[usize], text: &mut String) {
        let last = shown.iter().rposition(|column| !row[*column].text.is_empty()).unwrap_or(0);
        for (at, (column, width)) in shown.iter().zip(widths).enumerate().take(last + 1) {
            let cell = &row[*column];
            let cut = cut(&cell.text, *width);
            let pad = " ".repeat(width.saturating_sub(cut.width()));
            let styled = cut.style(cell.style).to_string();
            match self.columns[*column].align {
                Align::Right => text.extend([pad.as_str(), styled.as_str()]),
                Align::Left if at == last => text.push_str(&styled),
                Align::Left => text.extend([styled.as_str(), pad.as_str()]),
            }
            if at != last {
                text.push_str(GAP);
            }
        }
        text.push('\n');
    }
}

/// The text within `width` columns; what is cut off shows as `…`.
pub(crate) fn cut(text: &str, width: usize) -> Cow<'_, str> {
    if text.width() <= width {
        return Cow::Borrowed(text);
    }
    let room = width.saturating_sub(1);
    let mut used = 0;
    let kept = text.char_indices().find(|(_, c)| {
        used += c.width().unwrap_or(0);
        used > room
    });
    let end = kept.map_or(text.len(), |(at, _)| at);
    Cow::Owned(format!("{}…", &text[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[[&str; 3]]) -> Table {
        let mut table = Table::new([Column::right("ID"), Column::flexible("TASK"), Column::left("OWNER")]);
        for row in rows {
            table.row(row.map(Cell::plain));
        }
        table
    }

    #[test]
    fn columns_line_up_by_what_is_seen() {
        let text = table(&[["1", "日本語", "zed"], ["10", "plain", "日"]]).render(None);
        let text = anstream::adapter::strip_str(&text).to_string();
        assert_eq!(text, "ID  TASK    OWNER\n 1  日本語  zed\n10  plain   日\n");
    }

    #[test]
    fn the_flexible_column_gives_way() {
        let long = "a subject that is much too long for a narrow terminal";
        for width in [20, 30, 40] {
            let text =
                table(&[["1", long, "someone"], ["2", "日本語日本語日本語日本語日本語", ""]]).render(Some(width));
            for line in anstream::adapter::strip_str(&text).to_string().lines() {
                assert!(line.width() <= width.max(24), "{width}: {line:?}");
            }
        }
    }

    #[test]
    fn empty_columns_are_left_out() {
        let text = table(&[["1", "a", ""]]).render(None);
        assert_eq!(anstream::adapter::strip_str(&text).to_string(), "ID  TASK\n 1  a\n");
    }

    #[test]
    fn cells_are_safe() {
        let text = table(&[["1", "\u{1b}[2Jx\ny", ""]]).render(None);
        assert_eq!(text.lines().count(), 2);
        assert!(!anstream::adapter::strip_str(&text).to_string().contains('\u{1b}'));
        assert!(text.contains("\\u{1b}[2Jx\\ny"));
    }

    #[test]
    fn cutting_never_splits_a_character() {
        assert_eq!(cut("日本語", 6), "日本語");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("abc", 0), "…");
    }
}
