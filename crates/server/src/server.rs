//! A server from its first to its last breath.

use std::{fmt, future::Future, net::SocketAddr, sync::Arc};

use rullama_pull::Puller;
use tokio::{net::TcpListener, sync::watch, task::spawn_blocking};

use crate::{
    ApiKeys, Limits, Log, ModelRow, Options, ServerError, api::Api, catalog::Catalog, connections,
    guard::Guard, plain::ServedFile, routes::router, tls::Acceptor,
};

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    also: Option<(TcpListener, SocketAddr)>,
    catalog: Arc<Catalog>,
    guard: Arc<Guard>,
    limits: Limits,
    keys: Arc<ApiKeys>,
    log: Option<Log>,
    tls: Option<Acceptor>,
    api: Arc<Api>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Server {
    /// Checks the files and takes the address. Clients can connect from now on; they are answered by [`run`](Self::run).
    pub async fn bind(options: Options) -> Result<Self, ServerError> {
        let stopped = |source| ServerError::Stopped { source };
        let is_protected = options.open_to_network || !options.keys.is_empty();
        let open = [Some(options.address), options.also].into_iter().flatten();
        if let Some(address) = open.into_iter().find(|address| !address.ip().is_loopback())
            && !is_protected
        {
            return Err(ServerError::Unprotected { address });
        }
        let tls = options.tls.map(|tls| tls.acceptor(options.address.ip())).transpose()?;
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
        let also = match options.also {
            Some(address) => second(address).await,
            None => None,
        };
        let guard = Guard {
            address: address.ip(),
            allowed_hosts: options.allowed_hosts,
            origins: options.origins,
            patterns: options.origin_patterns,
        };
        let catalog = Arc::new(Catalog::new(options.stores, files));
        let root = catalog.store();
        let puller = root.zip(options.pull).map(|(root, pull)| Puller::new(root, pull));
        let api = Api::new(Arc::clone(&catalog), options.engine, puller, options.api_limits);
        Ok(Self {
            listener,
            address,
            also,
            catalog,
            guard: Arc::new(guard),
            limits: options.limits,
            keys: Arc::new(options.keys),
            log: options.log,
            tls,
            api: Arc::new(api),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it listens, too, if the second address was free.
    pub fn second_address(&self) -> Option<SocketAddr> {
        self.also.as_ref().map(|(_, address)| *address)
    }

    /// The URL to open in a browser on this machine.
    pub fn url(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address = SocketAddr::from(([127, 0, 0, 1], address.port()));
        }
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{address}/")
    }

    /// The models it serves, those with an error included.
    pub async fn models(&self) -> Result<Vec<ModelRow>, ServerError> {
        let catalog = Arc::clone(&self.catalog);
        let models = spawn_blocking(move || catalog.list()).await;
        models.map_err(|error| ServerError::Stopped { source: error.into() })
    }

    /// Answers until `stop` is ready, then lets answers in flight finish for as long as the limits allow.
    pub async fn run(
        self,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), ServerError> {
        let router = router(self.api, &self.guard, self.keys, self.log);
        let (limits, tls) = (self.limits, self.tls);
        let Some((also, _)) = self.also else {
            connections::serve(self.listener, router, limits, tls, stop).await;
            return Ok(());
        };
        let (end, mut ended) = watch::channel(());
        let stop_both = async move {
            stop.await;
            drop(end);
        };
        let second_ended = async move {
            // Nothing is ever sent: it ends when the sender is gone.
            while ended.changed().await.is_ok() {}
        };
        tokio::join!(
            connections::serve(self.listener, router.clone(), limits, tls.clone(), stop_both),
            connections::serve(also, router, limits, tls, second_ended),
        );
        Ok(())
    }
}

/// Listens at a second address, if it is free.
async fn second(address: SocketAddr) -> Option<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await.ok()?;
    let address = listener.local_addr().ok()?;
    Some((listener, address))
}
