// SPDX-License-Identifier: Apache-2.0
//! Parquet files. Batches are encoded by any thread and appended in their order; a file gets its name when complete.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use parquet::basic::{Compression, ConvertedType, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::{ColumnCloseResult, ColumnWriter, get_column_writer};
use parquet::data_type::ByteArray;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

use crate::error::{Error, Layer, Result};
use crate::write::columns::{Column, Field, Kind};
use crate::write::records::{Full, Name, SCHEMA_VERSION};

fn parquet_error(error: impl std::fmt::Display) -> Error {
    Error::outside(0, Layer::Parquet, error)
}

fn schema(name: &str, fields: &[Field]) -> parquet::errors::Result<TypePtr> {
    let column = |field: &Field| {
        let physical = match field.kind {
            Kind::I64 => Physical::INT64,
            Kind::F64 => Physical::DOUBLE,
            Kind::Bool => Physical::BOOLEAN,
            Kind::Text => Physical::BYTE_ARRAY,
        };
        let repetition = if field.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let mut builder = Type::primitive_type_builder(field.name, physical).with_repetition(repetition);
        if field.kind == Kind::Text {
            builder = builder.with_logical_type(Some(LogicalType::String)).with_converted_type(ConvertedType::UTF8);
        }
        builder.build().map(Arc::new)
    };
    let columns = fields.iter().map(column).collect::<parquet::errors::Result<Vec<_>>>()?;
    Ok(Arc::new(Type::group_type_builder(name).with_fields(columns).build()?))
}

fn properties(fields: &[Field]) -> WriterPropertiesPtr {
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("warpbed-pcap ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_dictionary_enabled(false)
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_key_value_metadata(Some(vec![KeyValue::new("warpbed.schema".to_owned(), SCHEMA_VERSION.to_owned())]));
    for field in fields {
        match field.kind {
            Kind::Text => builder = builder.set_column_dictionary_enabled(field.name.into(), true),
            Kind::I64 => builder = builder.set_column_encoding(field.name.into(), Encoding::DELTA_BINARY_PACKED),
            // Measured: times and RTTs do not shrink, and trying takes a tenth of the analysis.
            Kind::F64 => builder = builder.set_column_compression(field.name.into(), Compression::UNCOMPRESSED),
            Kind::Bool => {}
        }
    }
    Arc::new(builder.build())
}

/// A column of a batch as it will stand in the file.
pub struct EncodedColumn {
    bytes: Bytes,
    close: ColumnCloseResult,
}

/// The schema of a table and how to write it.
struct Shape {
    schema: TypePtr,
    descriptor: SchemaDescriptor,
    properties: WriterPropertiesPtr,
}

impl Shape {
    fn new(name: Name) -> Result<Self> {
        let schema = schema(name.text(), name.fields()).map_err(parquet_error)?;
        let properties = properties(name.fields());
        Ok(Shape { descriptor: SchemaDescriptor::new(schema.clone()), schema, properties })
    }

    fn encode(&self, at: usize, column: Column) -> parquet::errors::Result<EncodedColumn> {
        let mut bytes = TrackedWrite::new(Vec::new());
        let pages = Box::new(SerializedPageWriter::new(&mut bytes));
        let mut writer = get_column_writer(self.descriptor.column(at), self.properties.clone(), pages);
        write(&mut writer, column)?;
        let close = writer.close()?;
        Ok(EncodedColumn { bytes: Bytes::from(bytes.into_inner()?), close })
    }
}

fn write(writer: &mut ColumnWriter<'_>, column: Column) -> parquet::errors::Result<()> {
    fn given(levels: &[i16]) -> Option<&[i16]> {
        (!levels.is_empty()).then_some(levels)
    }
    match (writer, column) {
        (ColumnWriter::Int64ColumnWriter(w), Column::I64 { values, levels }) => {
            w.write_batch(&values, given(&levels), None)?;
        }
        (ColumnWriter::DoubleColumnWriter(w), Column::F64 { values, levels }) => {
            w.write_batch(&values, given(&levels), None)?;
        }
        (ColumnWriter::BoolColumnWriter(w), Column::Bool { values, levels }) => {
            w.write_batch(&values, given(&levels), None)?;
        }
        (ColumnWriter::ByteArrayColumnWriter(w), Column::Text { ids, words, levels }) => {
            let words: Vec<ByteArray> = words.into_iter().map(|w| ByteArray::from(w.into_bytes())).collect();
            let values: Vec<ByteArray> = ids.iter().filter_map(|id| words.get(*id as usize)).cloned().collect();
            w.write_batch(&values, given(&levels), None)?;
        }
        _ => return Err(parquet::errors::ParquetError::General("column of another type".to_owned())),
    }
    Ok(())
}

type Out = std::io::BufWriter<File>;
/// The library writes in small pieces.
const BUFFER: usize = 256 * 1024;

/// One file being written; batches that came before their turn wait.
struct Target {
    writer: SerializedFileWriter<Out>,
    next: u64,
    waiting: BTreeMap<u64, Vec<EncodedColumn>>,
    partial: PathBuf,
    path: PathBuf,
}

impl Target {
    fn append(&mut self, number: u64, batch: Vec<EncodedColumn>) -> parquet::errors::Result<()> {
        self.waiting.insert(number, batch);
        while let Some(batch) = self.waiting.remove(&self.next) {
            self.next += 1;
            let mut group = self.writer.next_row_group()?;
            for column in batch {
                group.append_column(&column.bytes, column.close)?;
            }
            group.close()?;
        }
        Ok(())
    }
}

/// All Parquet files of a run.
pub struct Files {
    list: Vec<(Name, Shape, Mutex<Target>)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Files {
    pub fn create(folder: &Path, tables: &[Name]) -> Result<Self> {
        let failed = |path: &Path, error: &dyn std::fmt::Display| {
            Error::outside(0, Layer::Io, format!("{}: {error}", path.display()))
        };
        fs::create_dir_all(folder).map_err(|e| failed(folder, &e))?;
        let mut list = Vec::new();
        for name in tables.iter().copied() {
            let shape = Shape::new(name)?;
            let path = folder.join(format!("{}.parquet", name.text()));
            let partial = folder.join(format!(".{}.parquet.partial", name.text()));
            let file = File::create(&partial).map_err(|e| failed(&partial, &e))?;
            let out = std::io::BufWriter::with_capacity(BUFFER, file);
            let writer = SerializedFileWriter::new(out, shape.schema.clone(), shape.properties.clone());
            let writer = writer.map_err(parquet_error)?;
            let target = Target { writer, next: 0, waiting: BTreeMap::new(), partial, path };
            list.push((name, shape, Mutex::new(target)));
        }
        Ok(Files { list })
    }

    fn place(&self, name: Name) -> Result<&(Name, Shape, Mutex<Target>)> {
        let place = self.list.iter().find(|(table, ..)| *table == name);
        place.ok_or_else(|| parquet_error(format!("table {} is not of this run", name.text())))
    }

    /// Encodes column `at` of a batch.
    pub fn encode(&self, name: Name, at: usize, column: Column) -> Result<EncodedColumn> {
        self.place(name)?.1.encode(at, column).map_err(parquet_error)
    }

    /// Appends batch `number` of a table when those before it are there.
    pub fn append(&self, name: Name, number: u64, columns: Vec<EncodedColumn>) -> Result<()> {
        lock(&self.place(name)?.2).append(number, columns).map_err(parquet_error)
    }

    /// Encodes and appends batch `number` of a table.
    pub fn write(&self, number: u64, full: Full) -> Result<()> {
        let Full { name, columns } = full;
        let encode = |(at, column)| self.encode(name, at, column);
        let columns = columns.into_iter().enumerate().map(encode).collect::<Result<_>>()?;
        self.append(name, number, columns)
    }

    /// Completes the files and gives them their names.
    pub fn finish(self) -> Result<()> {
        let mut done = Vec::new();
        for (_, _, target) in self.list {
            let target = target.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
            let mut out = target.writer.into_inner().map_err(parquet_error)?;
            out.flush().map_err(parquet_error)?;
            done.push((target.partial, target.path));
        }
        for (partial, path) in done {
            fs::rename(&partial, &path).map_err(parquet_error)?;
        }
        Ok(())
    }

    /// Takes away what was begun.
    pub fn abandon(self) {
        for (_, _, target) in self.list {
            let target = target.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
            // Already on the way out with an error; a file left over is overwritten by the next run.
            let _ = fs::remove_file(&target.partial);
        }
    }
}
