//! The files in `deploy`: the manifest against Kubernetes' own schemas, and the image where a container engine runs.

use std::process::{Command, Stdio};

use anyhow::Result;

use crate::{
    command::{say, sh},
    python,
};

/// Checks the manifest, and builds the image where that is possible.
pub(crate) fn deploy() -> Result<()> {
    let python = python::installed("deploy", "deploy/requirements-check.txt")?;
    let validate = python.replace("bin/python", "bin/kubernetes-validate");
    sh(&validate, &["--strict", "deploy/kubernetes.yaml"])?;
    say("the manifest is valid");
    let Some(engine) = engine() else {
        say("neither podman nor docker runs here: the image was not built");
        return Ok(());
    };
    sh(engine, &["build", "-f", "deploy/Containerfile", "-t", "rullama", "."])?;
    sh(engine, &["run", "--rm", "--entrypoint", "rullama", "rullama", "--version"])?;
    say("the image is built and starts");
    Ok(())
}

/// A container engine that answers: docker's client may be installed without its daemon.
fn engine() -> Option<&'static str> {
    ["podman", "docker"].into_iter().find(|engine| {
        let mut info = Command::new(engine);
        info.arg("info").stdout(Stdio::null()).stderr(Stdio::null());
        info.status().is_ok_and(|status| status.success())
    })
}
