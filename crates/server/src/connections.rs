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
    time::{sleep, timeout},
};
use tokio_io_timeout::TimeoutStream;
use tower_service::Service;

use crate::{Limits, tls::Acceptor};

/// A pause where the system has no descriptors left; connections wait in its queue meanwhile.
const EXHAUSTED: Duration = Duration::from_millis(500);

/// Answers on this listener until `stop` is ready, then lets answers in flight finish for a short while.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    tls: Option<Acceptor>,
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
        let (http, watcher, tls) = (http.clone(), graceful.watcher(), tls.clone());
        tokio::spawn(async move {
            // Whatever ends a connection early concerns its client alone.
            match tls {
                None => {
                    let io = TokioIo::new(Box::pin(stream));
                    let _ = watcher.watch(http.serve_connection(io, answer)).await;
                }
                Some(Acceptor(tls)) => {
                    let accepted = timeout(limits.head, tls.accept(Box::pin(stream))).await;
                    if let Ok(Ok(stream)) = accepted {
                        let io = TokioIo::new(stream);
                        let _ = watcher.watch(http.serve_connection(io, answer)).await;
                    }
                }
            }
            drop(place);
        });
    }
    drop(listener);
    tokio::select! {
        () = graceful.shutdown() => {}
        () = sleep(limits.drain) => {}
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
