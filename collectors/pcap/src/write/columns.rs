// SPDX-License-Identifier: Apache-2.0
//! Columns in memory and the description of a table.
#![forbid(unsafe_code)]

/// Rows after which a batch is written.
pub const ROWS: usize = 32_768;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    I64,
    F64,
    Bool,
    Text,
}

/// One column of a table; `docs/pcap.md` gives the meanings, names hold the units.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub name: &'static str,
    pub kind: Kind,
    pub nullable: bool,
}

pub const fn field(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, nullable: false }
}

pub const fn nullable(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, nullable: true }
}

/// Values; nullable columns hold only those present and, per row, 1 or 0 in `levels`.
#[derive(Debug)]
pub enum Column {
    I64 { values: Vec<i64>, levels: Vec<i16> },
    F64 { values: Vec<f64>, levels: Vec<i16> },
    Bool { values: Vec<bool>, levels: Vec<i16> },
    Text { ids: Vec<u32>, words: Vec<String>, levels: Vec<i16> },
}

impl Column {
    pub fn new(kind: Kind) -> Self {
        let levels = Vec::new();
        match kind {
            Kind::I64 => Column::I64 { values: Vec::new(), levels },
            Kind::F64 => Column::F64 { values: Vec::new(), levels },
            Kind::Bool => Column::Bool { values: Vec::new(), levels },
            Kind::Text => Column::Text { ids: Vec::new(), words: Vec::new(), levels },
        }
    }
}

/// A value of a row of the small tables.
#[derive(Clone, Debug)]
pub enum Value {
    Null,
    I64(i64),
    F64(f64),
    Bool(bool),
    Text(String),
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Value::I64(value.min(i64::MAX as u64) as i64)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Value::I64(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Value::F64(value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Value::Text(value.to_owned())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

/// A batch of a table filled row by row.
#[derive(Debug, Default)]
pub struct Batch {
    columns: Vec<Column>,
    rows: usize,
}

impl Batch {
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Adds a row; a value that does not fit its column becomes null.
    pub fn push(&mut self, fields: &[Field], row: Vec<Value>) {
        if self.columns.is_empty() {
            self.columns = fields.iter().map(|f| Column::new(f.kind)).collect();
        }
        self.rows += 1;
        for (column, value) in self.columns.iter_mut().zip(row) {
            let (present, levels) = match (column, value) {
                (Column::I64 { values, levels }, Value::I64(value)) => {
                    values.push(value);
                    (1, levels)
                }
                (Column::F64 { values, levels }, Value::F64(value)) => {
                    values.push(value);
                    (1, levels)
                }
                (Column::Bool { values, levels }, Value::Bool(value)) => {
                    values.push(value);
                    (1, levels)
                }
                (Column::Text { ids, words, levels }, Value::Text(value)) => {
                    ids.push(words.len() as u32);
                    words.push(value);
                    (1, levels)
                }
                (
                    Column::I64 { levels, .. }
                    | Column::F64 { levels, .. }
                    | Column::Bool { levels, .. }
                    | Column::Text { levels, .. },
                    _,
                ) => (0, levels),
            };
            levels.push(present);
        }
    }

    pub fn take(&mut self) -> Vec<Column> {
        self.rows = 0;
        std::mem::take(&mut self.columns)
    }
}
