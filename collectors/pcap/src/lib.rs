// SPDX-License-Identifier: Apache-2.0
//! TCP time series from packet captures: `analyze` is the way in, `docs/pcap.md` says what comes out.

pub mod analyze;
mod bytes_at;
pub mod clock;
pub mod compare;
mod connections;
pub mod error;
#[doc(hidden)]
pub mod fuzzing;
pub mod generate;
mod measure;
pub mod read;
pub mod write;

/// The Python module `_warpbed_pcap`, described by `_warpbed_pcap.pyi`.
#[cfg(feature = "python")]
#[pyo3::pymodule(name = "_warpbed_pcap")]
mod python {
    use std::fs::File;
    use std::io::BufWriter;
    use std::path::PathBuf;

    use pyo3::create_exception;
    use pyo3::exceptions::{PyOSError, PyValueError};
    use pyo3::prelude::*;
    use pyo3::types::PyDict;

    use crate::analyze::summary::Summary;
    use crate::analyze::{Options, analyze as run};
    use crate::clock::Clock;
    use crate::error::Error;
    use crate::generate::{Settings, Simulation};
    use crate::write::label::Wanted;

    create_exception!(
        _warpbed_pcap,
        CaptureError,
        PyValueError,
        "A capture that cannot be read, or a table not written."
    );

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("CaptureError", module.py().get_type::<CaptureError>())
    }

    fn details<'py>(py: Python<'py>, path: Option<&PathBuf>, error: &Error) -> PyResult<Bound<'py, PyDict>> {
        let (needed, seen) = error.needed_seen();
        let dict = PyDict::new(py);
        dict.set_item("path", path.map(|p| p.display().to_string()))?;
        dict.set_item("message", error.to_string())?;
        dict.set_item("offset", error.offset())?;
        dict.set_item("layer", error.layer().name())?;
        dict.set_item("needed", needed)?;
        dict.set_item("seen", seen)?;
        Ok(dict)
    }

    fn summary<'py>(py: Python<'py>, s: &Summary) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("packets", s.packets)?;
        dict.set_item("tcp_packets", s.tcp_packets)?;
        dict.set_item("other_packets", s.other_packets)?;
        dict.set_item("fragments", s.fragments)?;
        dict.set_item("bad_packets", s.bad_packets)?;
        dict.set_item("first_bad", s.first_bad.as_ref().map(|e| details(py, None, e)).transpose()?)?;
        dict.set_item("flows", s.flows)?;
        dict.set_item("evicted_flows", s.evicted_flows)?;
        dict.set_item("forgotten_segments", s.forgotten_segments)?;
        dict.set_item("first_ns", s.first_ns)?;
        dict.set_item("last_ns", s.last_ns)?;
        dict.set_item("bytes_read", s.bytes)?;
        dict.set_item("seconds", s.seconds)?;
        let errors = s.errors.iter().map(|(path, error)| details(py, Some(path), error));
        dict.set_item("errors", errors.collect::<PyResult<Vec<_>>>()?)?;
        Ok(dict)
    }

    /// A flow to be found in the captures, from a dict with the names of `Wanted`.
    #[derive(FromPyObject)]
    #[pyo3(from_item_all)]
    struct Flow {
        name: String,
        cca: Option<String>,
        src: Option<String>,
        dst: Option<String>,
        src_addr: Option<String>,
        src_port: Option<u16>,
        dst_addr: Option<String>,
        dst_port: Option<u16>,
        size_bytes: Option<u64>,
        skip: u32,
    }

    impl From<Flow> for Wanted {
        fn from(f: Flow) -> Self {
            Wanted {
                name: f.name,
                cca: f.cca,
                src: f.src,
                dst: f.dst,
                src_addr: f.src_addr,
                src_port: f.src_port,
                dst_addr: f.dst_addr,
                dst_port: f.dst_port,
                size_bytes: f.size_bytes,
                skip: f.skip,
            }
        }
    }

    /// From reference (ns), offset (ns) and drift (parts per 10^9).
    fn of((reference_ns, offset_ns, drift_ppb): (i64, i64, f64)) -> Clock {
        Clock { reference_ns, offset_ns, drift_ppb }
    }

    #[pyfunction]
    #[pyo3(signature = (paths, *, out, interval_ns, start_ns, threads, max_flows, flows, live, clock))]
    #[allow(clippy::too_many_arguments)] // Keyword arguments of Python.
    fn analyze<'py>(
        py: Python<'py>,
        paths: Vec<PathBuf>,
        out: Option<PathBuf>,
        interval_ns: i64,
        start_ns: Option<i64>,
        threads: usize,
        max_flows: usize,
        flows: Vec<Flow>,
        live: bool,
        clock: (i64, i64, f64),
    ) -> PyResult<Bound<'py, PyDict>> {
        let wanted = flows.into_iter().map(Wanted::from).collect();
        let clock = of(clock);
        let options =
            Options { out, interval_ns, start_ns, threads, max_flows, wanted, live, clock, ..Options::default() };
        let done = py.detach(|| run(&paths, &options));
        summary(py, &done.map_err(|error| CaptureError::new_err(error.to_string()))?)
    }

    #[pyfunction]
    #[pyo3(signature = (a, b, *, out, start_ns, max_flows, flows, max_delay_ns, clock, forward_from_a))]
    #[allow(clippy::too_many_arguments)] // Keyword arguments of Python.
    fn compare<'py>(
        py: Python<'py>,
        a: PathBuf,
        b: PathBuf,
        out: Option<PathBuf>,
        start_ns: Option<i64>,
        max_flows: usize,
        flows: Vec<Flow>,
        max_delay_ns: i64,
        clock: (i64, i64, f64),
        forward_from_a: Option<bool>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let wanted = flows.into_iter().map(Wanted::from).collect();
        let options = Options { out, start_ns, max_flows, wanted, clock: of(clock), ..Options::default() };
        let done = py.detach(|| crate::compare::compare(&a, &b, &options, max_delay_ns, forward_from_a));
        let s = done.map_err(|error| CaptureError::new_err(error.to_string()))?;
        let dict = PyDict::new(py);
        let [at_a, at_b] = s.packets;
        dict.set_item("packets_a", at_a)?;
        dict.set_item("packets_b", at_b)?;
        dict.set_item("delivered", s.delivered)?;
        dict.set_item("lost", s.lost)?;
        let errors = s.errors.iter().map(|(path, error)| details(py, Some(path), error));
        dict.set_item("errors", errors.collect::<PyResult<Vec<_>>>()?)?;
        Ok(dict)
    }

    #[pyfunction]
    #[pyo3(signature = (path, *, flows, packets, seed, snap, rate_bps, rtt_ns, queue_bytes, loss_ppm, flow_bytes, mss, ack_every))]
    #[allow(clippy::too_many_arguments)] // Keyword arguments of Python.
    fn generate(
        py: Python<'_>,
        path: PathBuf,
        flows: u32,
        packets: u64,
        seed: u64,
        snap: u32,
        rate_bps: u64,
        rtt_ns: u64,
        queue_bytes: u64,
        loss_ppm: u64,
        flow_bytes: u64,
        mss: u32,
        ack_every: u32,
    ) -> PyResult<()> {
        if rate_bps == 0 || mss == 0 || mss > 65_000 {
            return Err(PyValueError::new_err("rate_bps must be above 0 and mss between 1 and 65000"));
        }
        let nanoseconds = true;
        let settings = Settings {
            flows,
            packets,
            seed,
            snap,
            rate_bps,
            rtt_ns,
            queue_bytes,
            loss_ppm,
            flow_bytes,
            mss,
            nanoseconds,
            ack_every,
        };
        let done = py.detach(|| {
            let file = File::create(&path)?;
            Simulation::run(settings, BufWriter::with_capacity(1 << 20, file))
        });
        done.map_err(|error| PyOSError::new_err(format!("{}: {error}", path.display())))
    }
}
