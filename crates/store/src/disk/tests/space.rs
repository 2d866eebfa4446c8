//! Space of deleted messages is reclaimed, and readers do not notice that other messages are moved for it.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn unused_segments_are_removed() {
    let dir = TestDir::new();
    let store = open(dir.path());
    for byte in 0..100 {
        add(&store, &["ann", "bob"], byte).await;
    }
    assert!(segments(dir.path()).len() >= 5);
    store.purge(&name("ann"), MessageId::MAX, usize::MAX).await.unwrap();
    assert!(segments(dir.path()).len() >= 5, "the copies of bob are still in them");
    store.purge(&name("bob"), MessageId::MAX, usize::MAX).await.unwrap();
    eventually("at most one segment is left", || segments(dir.path()).len() <= 1).await;
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn space_of_large_message_is_freed_at_once() {
    use std::os::unix::fs::MetadataExt as _;
    let dir = TestDir::new();
    let store = DiskStore::open(dir.path(), Settings::default()).unwrap();
    let first = add(&store, &["ann"], b'a').await.remove(0);
    let large = store.append(message(1, &["ann"], &vec![b'x'; 4 << 20])).await.unwrap().stored.remove(0);
    let last = add(&store, &["ann"], b'z').await.remove(0);
    let file = segments(dir.path()).remove(0);
    let blocks = || fs::metadata(&file).unwrap().blocks() * 512;
    assert!(blocks() > 4 << 20);
    store.remove(&large.mailbox, large.id).await.unwrap();
    eventually("the space is freed", || blocks() < 1 << 20).await;
    // A hole is not damage, neither for the records around it nor after a crash.
    let copy = copy_as_after_crash(dir.path());
    for store in [store, open(copy.path())] {
        assert_eq!(store.source(&large.mailbox, large.id).await.unwrap(), None);
        assert_eq!(body(&store, &first).await.unwrap(), [b'a'; 1000]);
        assert_eq!(body(&store, &last).await.unwrap(), [b'z'; 1000]);
        assert_eq!(store.usage().await.unwrap().messages, 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_active_segment_is_removed() {
    let dir = TestDir::new();
    let store = open(dir.path());
    for byte in 0..5 {
        add(&store, &["ann"], byte).await;
    }
    store.purge(&name("ann"), MessageId::MAX, usize::MAX).await.unwrap();
    eventually("no file is left", || segments(dir.path()).is_empty()).await;
    let next = add(&store, &["ann"], b'n').await.remove(0);
    drop(store);
    assert_eq!(body(&open(dir.path()), &next).await.unwrap(), [b'n'; 1000]);
}

#[tokio::test(flavor = "multi_thread")]
async fn compacts_sparse_segments() {
    let dir = TestDir::new();
    let store = open(dir.path());
    let mut kept = Vec::new();
    for byte in 0..200 {
        let stored = add(&store, &["ann", "bob"], byte).await;
        for summary in &stored[..if byte % 10 == 0 { 1 } else { 2 }] {
            store.remove(&summary.mailbox, summary.id).await.unwrap();
        }
        kept.extend((byte % 10 == 0).then(|| (byte, stored[1].clone())));
    }
    // Twenty messages of a kilobyte fit into two segments, and the active one is not compacted.
    eventually("few segments are left", || segments(dir.path()).len() <= 4).await;
    let copy = copy_as_after_crash(dir.path());
    for store in [store, open(copy.path())] {
        assert_eq!(store.usage().await.unwrap().messages, kept.len() as u64);
        for (byte, summary) in &kept {
            assert_eq!(body(&store, summary).await.unwrap(), [*byte; 1000]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_segment_does_not_prevent_compaction_of_others() {
    let dir = TestDir::new();
    let store = open(dir.path());
    let mut all = Vec::new();
    for byte in 0..150 {
        all.extend(add(&store, &["ann"], byte).await);
    }
    drop(store);
    let first = &segments(dir.path())[0];
    flip_bit(first);
    let store = open(dir.path());
    for (number, summary) in all.iter().enumerate() {
        if number % 5 != 0 {
            store.remove(&summary.mailbox, summary.id).await.unwrap();
        }
    }
    eventually("most segments are removed", || segments(dir.path()).len() <= 5).await;
    assert!(first.exists());
    assert_eq!(body(&store, &all[145]).await.unwrap(), [145; 1000]);
}

#[tokio::test(flavor = "multi_thread")]
async fn detects_moved_files() {
    for file in ["segments", "restante.db"] {
        let dir = TestDir::new();
        let store = open(dir.path());
        let first = add(&store, &["ann"], b'a').await.remove(0);
        let (path, moved) = (dir.path().join(file), dir.path().join("aside"));
        fs::rename(&path, &moved).unwrap();
        // The files are not checked for every message.
        tokio::time::sleep(Duration::from_millis(150)).await;
        for _ in 0..2 {
            store.append(message(2, &["ann"], b"lost?")).await.unwrap_err();
            store.usage().await.unwrap_err();
        }
        fs::rename(&moved, &path).unwrap();
        store.usage().await.unwrap();
        add(&store, &["ann"], b'b').await;
        assert_eq!(body(&store, &first).await.unwrap(), [b'a'; 1000]);
        assert_eq!(store.list(&name("ann"), Page::ALL).await.unwrap().messages.len(), 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn short_source_does_not_keep_long_record_in_memory() {
    let dir = TestDir::new();
    let store = open(dir.path());
    let names: Vec<String> = (0..100).map(|number| format!("box{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let stored = store.append(message(1, &names, b"short")).await.unwrap().stored.swap_remove(7);
    let source = store.source(&stored.mailbox, stored.id).await.unwrap().unwrap();
    assert_eq!((&source.trace[..], &source.body[..]), (&b"X-Trace: box7\r\n"[..], &b"short"[..]));
    // If there are no other references, the buffer can be taken over, which shows its capacity.
    drop(store);
    let buffer = source.body.try_into_mut().expect("there are no other references");
    assert!(buffer.capacity() < 100, "{}", buffer.capacity());
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_are_not_affected_by_compaction() {
    let dir = TestDir::new();
    let store = Arc::new(open(dir.path()));
    let kept = add(&store, &["kept"], b'k').await.remove(0);
    let reader = tokio::spawn({
        let (store, kept) = (store.clone(), kept.clone());
        async move {
            for _ in 0..500 {
                assert_eq!(body(&store, &kept).await.unwrap(), [b'k'; 1000]);
            }
        }
    });
    while !reader.is_finished() {
        for byte in 0..50 {
            add(&store, &["ann"], byte).await;
        }
        store.purge(&name("ann"), MessageId::MAX, usize::MAX).await.unwrap();
    }
    reader.await.unwrap();
    assert_eq!(body(&store, &kept).await.unwrap(), [b'k'; 1000]);
}
