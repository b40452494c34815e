//! The same work many times over, a bounded number of them at once.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::JoinSet;

use super::error::Result;

/// Does `work(0)` to `work(count - 1)` with so many workers, and returns what came of each, in order. The first error
/// ends it all.
pub(super) async fn in_parallel<T, F, Fut>(count: usize, workers: usize, work: F) -> Result<Vec<T>>
where
    T: Send + 'static,
    F: Fn(usize) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Result<T>> + Send + 'static,
{
    let next = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..workers.clamp(1, count.max(1)) {
        let (next, work) = (Arc::clone(&next), work.clone());
        tasks.spawn(async move {
            let mut done = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return Ok(done);
                }
                done.push((number, work(number).await?));
            }
        });
    }
    let mut all = Vec::with_capacity(count);
    while let Some(done) = tasks.join_next().await {
        let done: Result<Vec<(usize, T)>> = done?;
        all.extend(done?);
    }
    all.sort_unstable_by_key(|(number, _)| *number);
    Ok(all.into_iter().map(|(_, value)| value).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::error::LoadError;

    #[tokio::test]
    async fn everything_is_done_once_and_comes_back_in_order() {
        let squares = in_parallel(50, 7, |n| async move {
            tokio::task::yield_now().await;
            Ok(n * n)
        });
        assert_eq!(squares.await.unwrap(), (0..50).map(|n| n * n).collect::<Vec<_>>());
        assert!(in_parallel(0, 3, |n| async move { Ok(n) }).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn an_error_ends_it() {
        let fails = |n| async move { if n == 3 { Err(LoadError::Plan("three".to_owned())) } else { Ok(n) } };
        assert_eq!(in_parallel(9, 2, fails).await.unwrap_err().to_string(), "three");
    }
}
