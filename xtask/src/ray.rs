//! `deploy/ray` with real Ray: replicas behind one address, of which one is killed, and batch jobs over files.

use anyhow::Result;

use crate::{
    command::{root, say, sh_with},
    python,
    test::program,
};

/// Installs Ray where it is missing and runs the tests of `deploy/ray` with our program and small models.
pub(crate) fn ray() -> Result<()> {
    let variables =
        [("RULLAMA", program()?), ("GOLDENS", root().join("goldens").display().to_string())];
    let ray = python::installed("ray", "deploy/ray/requirements-test.txt")?;
    let tests =
        ["-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "-W", "ignore", "test_ray.py"];
    sh_with(&root().join("deploy/ray"), &variables, &ray, &tests)?;
    say("Ray loses no request");
    Ok(())
}
