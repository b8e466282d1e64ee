// SPDX-License-Identifier: Apache-2.0
//! `generate OUT|- [name=value]...`: a capture of simulated TCP; the names are those of `generate::Settings`.
#![forbid(unsafe_code)]

use std::io::{BufWriter, Write};

use warpbed_pcap::generate::{Settings, Simulation};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: generate OUT|- [flows=N] [packets=N] [snap=N] [seed=N] ...")?;
    let mut settings = Settings::default();
    for argument in arguments {
        let (name, value) = argument.split_once('=').ok_or("settings are name=value")?;
        match name {
            "flows" => settings.flows = value.parse()?,
            "packets" => settings.packets = value.parse()?,
            "snap" => settings.snap = value.parse()?,
            "seed" => settings.seed = value.parse()?,
            "rate_bps" => settings.rate_bps = value.parse()?,
            "rtt_ns" => settings.rtt_ns = value.parse()?,
            "queue_bytes" => settings.queue_bytes = value.parse()?,
            "loss_ppm" => settings.loss_ppm = value.parse()?,
            "flow_bytes" => settings.flow_bytes = value.parse()?,
            "mss" => settings.mss = value.parse()?,
            "ack_every" => settings.ack_every = value.parse()?,
            "nanoseconds" => settings.nanoseconds = value.parse()?,
            _ => return Err(format!("unknown setting {name}").into()),
        }
    }
    let out: Box<dyn Write> = match path.as_str() {
        "-" => Box::new(std::io::stdout().lock()),
        path => Box::new(std::fs::File::create(path)?),
    };
    Simulation::run(settings, BufWriter::with_capacity(1 << 20, out))?;
    Ok(())
}
