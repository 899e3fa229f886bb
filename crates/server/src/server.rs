//! A server from its first to its last breath.

use std::{future::Future, net::SocketAddr, sync::Arc};

use tokio::{net::TcpListener, task::spawn_blocking};

use crate::{
    Limits, ModelRow, Options, ServerError, catalog::Catalog, connections, guard::Guard,
    plain::ServedFile, routes::router,
};

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    catalog: Arc<Catalog>,
    guard: Arc<Guard>,
    limits: Limits,
}

impl Server {
    /// Checks the files and takes the address. Clients can connect from now on; they are answered by [`run`](Self::run).
    pub async fn bind(options: Options) -> Result<Self, ServerError> {
        let stopped = |source| ServerError::Stopped { source };
        let files = options.files;
        let files = spawn_blocking(move || {
            let mut served: Vec<ServedFile> = Vec::new();
            for file in files {
                if served.iter().any(|other| other.name() == file.name) {
                    return Err(ServerError::SameName { name: file.name });
                }
                served.push(ServedFile::open(file)?);
            }
            Ok(served)
        });
        let files = files.await.map_err(|error| stopped(error.into()))??;
        let bind = |source| ServerError::Bind { address: options.address, source };
        let listener = TcpListener::bind(options.address).await.map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        let guard = Guard {
            address: address.ip(),
            allowed_hosts: options.allowed_hosts,
            origins: options.origins,
        };
        let catalog = Arc::new(Catalog::new(options.stores, files));
        Ok(Self { listener, address, catalog, guard: Arc::new(guard), limits: options.limits })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL to open in a browser on this machine.
    pub fn url(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address = SocketAddr::from(([127, 0, 0, 1], address.port()));
        }
        format!("http://{address}/")
    }

    /// The models it serves, those with an error included.
    pub async fn models(&self) -> Result<Vec<ModelRow>, ServerError> {
        let catalog = Arc::clone(&self.catalog);
        let models = spawn_blocking(move || catalog.list()).await;
        models.map_err(|error| ServerError::Stopped { source: error.into() })
    }

    /// Answers until `stop` is ready, then lets answers in flight finish for up to five seconds.
    pub async fn run(
        self,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), ServerError> {
        let router = router(self.catalog, &self.guard);
        connections::serve(self.listener, router, self.limits, stop).await;
        Ok(())
    }
}
