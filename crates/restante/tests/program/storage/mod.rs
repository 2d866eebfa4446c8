//! Tests of stored messages with the real program: data directories, crashes, failing and full disks, PostgreSQL, and several nodes on
//! one database.

mod cluster;
mod crash;
mod data_directory;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod faults;
#[cfg(target_os = "linux")]
mod full_disk;
mod postgres;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod power_loss;
mod upgrade;
