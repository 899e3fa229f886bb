//! Connections: how many there may be, and how long each may take.

use std::{convert::Infallible, future::Future, io, pin::pin, sync::Arc, time::Duration};

use axum::{Router, body::Body, http::Request};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::sleep,
};
use tokio_io_timeout::TimeoutStream;
use tower_service::Service;

/// How long answers may take to finish once an end was requested.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// A pause where the system has no descriptors left; connections wait in its queue meanwhile.
const EXHAUSTED: Duration = Duration::from_millis(500);

/// What clients may take of a server.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at a time; more wait until one ends.
    pub connections: usize,
    /// Longest time from the moment a connection may send a request until its head is complete. Connections that are
    /// kept alive and say nothing end after it, too.
    pub head: Duration,
    /// Longest time in which a client takes not a single byte of an answer. Slow downloads go on as long as they move.
    pub stalled: Duration,
}

impl Default for Limits {
    /// With a socket and a file each, the connections take half the descriptors a process usually has.
    fn default() -> Self {
        Self { connections: 256, head: Duration::from_secs(15), stalled: Duration::from_secs(120) }
    }
}

/// Answers on this listener until `stop` is ready, then lets answers in flight finish for a short while.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    stop: impl Future<Output = ()>,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head);
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(limits.connections.max(1)));
    let mut stop = pin!(stop);
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, accept(&listener).await)
        };
        let (place, stream) = tokio::select! {
            next = next => next,
            () = &mut stop => break,
        };
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(limits.stalled));
        let router = router.clone();
        let answer = service_fn(move |request: Request<Incoming>| {
            let answer = router.clone().call(request.map(Body::new));
            async { answer.await.map_err(|never: Infallible| match never {}) }
        });
        let connection = http.serve_connection(TokioIo::new(Box::pin(stream)), answer);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            // Whatever ends a connection early concerns its client alone.
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    tokio::select! {
        () = graceful.shutdown() => {}
        () = sleep(LAST_WORDS) => {}
    }
}

/// The next connection, whatever becomes of others before it.
async fn accept(listener: &TcpListener) -> TcpStream {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Without it small answers wait for company; with an error they are slower, no more.
                let _ = stream.set_nodelay(true);
                return stream;
            }
            Err(error)
                if matches!(
                    error.kind(),
                    ConnectionAborted | ConnectionRefused | ConnectionReset
                ) => {}
            Err(_) => sleep(EXHAUSTED).await,
        }
    }
}
