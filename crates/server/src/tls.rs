//! https: with the user's certificate, or one that is made at the start.

use std::{
    fmt,
    io::{self, Read as _},
    net::IpAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    },
};

use crate::ServerError;

/// No chain of certificates comes near this.
const MAX_PEM: u64 = 1 << 20;

/// Where the certificate comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tls {
    /// Files in PEM format.
    Files {
        /// The certificate, followed by those it was signed with.
        certificate: PathBuf,
        /// Its private key.
        key: PathBuf,
    },
    /// A new certificate for these host names and addresses, which browsers ask about once.
    SelfSigned {
        /// Host names and addresses.
        names: Vec<String>,
    },
}

/// What accepts encrypted connections.
#[derive(Clone)]
pub(crate) struct Acceptor(pub(crate) TlsAcceptor);

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Acceptor")
    }
}

impl Tls {
    /// Reads or makes the certificate. `address` is one of its names where it is made.
    pub(crate) fn acceptor(&self, address: IpAddr) -> Result<Acceptor, ServerError> {
        let (chain, key) = match self {
            Self::Files { certificate, key } => read(certificate, key)?,
            Self::SelfSigned { names } => self_signed(names, address)?,
        };
        let failed = |error: &dyn fmt::Display| ServerError::Tls { problem: error.to_string() };
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(&error))?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| failed(&error))?;
        Ok(Acceptor(TlsAcceptor::from(Arc::new(config))))
    }
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn read(certificate: &Path, key: &Path) -> Result<Identity, ServerError> {
    let unusable = |path: &Path, problem: &str| ServerError::Tls {
        problem: format!("{} holds no {problem} in PEM format", path.display()),
    };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes(certificate)?).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty());
    let chain = chain.ok_or_else(|| unusable(certificate, "certificate"))?;
    let secret = PrivateKeyDer::from_pem_slice(&bytes(key)?);
    Ok((chain, secret.map_err(|_| unusable(key, "private key"))?))
}

fn bytes(path: &Path) -> Result<Vec<u8>, ServerError> {
    let unreadable = |error: io::Error| ServerError::Tls {
        problem: format!("cannot read {}: {error}", path.display()),
    };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(MAX_PEM).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

fn self_signed(names: &[String], address: IpAddr) -> Result<Identity, ServerError> {
    let mut all = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    if !address.is_unspecified() {
        all.push(address.to_string());
    }
    all.extend(names.iter().cloned());
    all.sort_unstable();
    all.dedup();
    let failed = |error: rcgen::Error| ServerError::Tls { problem: error.to_string() };
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(all).map_err(failed)?;
    let key = PrivateKeyDer::try_from(signing_key.serialize_der());
    let key = key.map_err(|problem| ServerError::Tls { problem: problem.to_owned() })?;
    Ok((vec![cert.der().clone()], key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates() {
        let address = IpAddr::from([192, 168, 1, 5]);
        let own = Tls::SelfSigned { names: vec!["box.local".into()] };
        own.acceptor(address).unwrap();

        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
        let made = generate_simple_self_signed(vec!["box.local".to_owned()]).unwrap();
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let files = Tls::Files { certificate: certificate.clone(), key: key.clone() };
        files.acceptor(address).unwrap();

        let problem = |certificate: &Path, key: &Path| {
            let files = Tls::Files { certificate: certificate.into(), key: key.into() };
            files.acceptor(address).unwrap_err().to_string()
        };
        assert!(problem(&key, &key).contains("key.pem holds no certificate"));
        assert!(problem(&certificate, &certificate).contains("cert.pem holds no private key"));
        assert!(problem(&folder.path().join("none"), &key).contains("cannot read"));
    }
}
