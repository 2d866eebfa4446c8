//! Temporary measurement.
use std::time::Instant;

use bytes::Bytes;
use jiff::Timestamp;
use restante_mail::message::{Headline, MessageId, Summary};
use restante_mail::mime::Mime;
use restante_mail::naming::Naming;

use super::{Changes, Entry, Index};

fn cpu() -> f64 {
    let s = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    s.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}

struct Rng(u64);
impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let m = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let m = (m ^ (m >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        m ^ (m >> 31)
    }
}

pub(crate) fn word(mut rank: u64) -> String {
    let mut w = String::new();
    while rank > 0 || w.len() < 4 {
        w.push(char::from(b"bdfghjklmnprstvz"[(rank % 16) as usize]));
        w.push(char::from(b"aeiou"[(rank / 16 % 5) as usize]));
        rank /= 80;
    }
    w
}

struct Gen(Vec<u64>);
impl Gen {
    fn new() -> Self {
        let mut sum = 0;
        Self(
            (0..50_000u64)
                .map(|r| {
                    sum += (1u64 << 32) / (r + 1);
                    sum
                })
                .collect(),
        )
    }
    fn rank(&self, r: u64) -> u64 {
        let total = *self.0.last().unwrap();
        self.0.partition_point(|&s| s <= r % total) as u64
    }
    fn body(&self, kind: &str, number: u64, size: usize) -> (String, String) {
        let mut out = String::new();
        if kind == "text" {
            while out.len() < size {
                out.push_str("The quick brown fox jumps over the lazy dog while the rain falls mainly.\r\n");
            }
            return ("bench".into(), out);
        }
        let mut rng = Rng(number);
        let mut subject = Vec::new();
        for _ in 0..5 {
            subject.push(word(self.rank(rng.next())));
        }
        while out.len() < size {
            for i in 0..12 {
                if i > 0 {
                    out.push(' ')
                }
                out.push_str(&word(self.rank(rng.next())));
            }
            out.push_str("\r\n");
        }
        (subject.join(" "), out)
    }
}

fn message(g: &Gen, kind: &str, number: u64) -> (Summary, Bytes) {
    let (subject, body) = g.body(kind, number, 600);
    let name = word(number % 1000);
    let mailbox = format!("search-{}", number % 2000);
    let received = Timestamp::from_microsecond(1_794_699_770_000_000 + i64::try_from(number).unwrap() * 90).unwrap();
    let source = format!(
        "Return-Path: <sender@bench.example>\r\nReceived: from bench ([127.0.0.1]) by inbucket\r\n  for <{mailbox}>; {received}\r\n\
         From: {name} <{name}@bench.example>\r\nTo: receiver@bench.example\r\nSubject: {subject}\r\n\
         Date: Thu, 01 Jan 2026 12:00:00 +0000\r\nMessage-ID: <{number}@bench.example>\r\nMIME-Version: 1.0\r\n\
         Content-Type: text/plain; charset=utf-8\r\n\r\n{body}"
    );
    let summary = Summary {
        mailbox: Naming::Local.parse_mailbox(&mailbox).unwrap(),
        id: MessageId::next_after(MessageId::ZERO, received),
        headline: Headline::new(&format!("{name} <{name}@bench.example>"), ["<receiver@bench.example>"], &subject),
        received,
        size: source.len() as u64,
        seen: false,
    };
    (summary, Bytes::from(source))
}

#[test]
#[ignore]
fn measure() {
    let env = |n: &str, d: &str| std::env::var(n).unwrap_or(d.to_owned());
    let n: u64 = env("N", "100000").parse().unwrap();
    let batch: usize = env("BATCH", "512").parse().unwrap();
    let kind = env("KIND", "zipf");
    let dir = std::path::PathBuf::from(env("DIR", "/tmp/w/wt/search-data"));
    if std::env::var("KEEP").is_err() {
        std::fs::remove_dir_all(&dir).ok();
        std::fs::create_dir_all(&dir).unwrap();
        let (mut index, _) = Index::open(Some(&dir)).unwrap();
        for s in env("CONFIG", "").split(';').filter(|s| !s.is_empty()) {
            let (k, v) = s.split_once('=').unwrap();
            index.connection.execute(&format!("INSERT INTO words(words, rank) VALUES('{k}', {v})"), []).unwrap();
        }
        let g = Gen::new();
        let (mut t_parse, mut t_entry, mut t_write, mut t_texts) = (0.0, 0.0, 0.0, 0);
        let start = Instant::now();
        let mut number = 0;
        while number < n {
            let end = (number + batch as u64).min(n);
            let sources: Vec<_> = (number..end).map(|number| message(&g, &kind, number)).collect();
            number = end;
            let a = cpu();
            let mimes: Vec<_> = sources.into_iter().map(|(summary, source)| (summary, Mime::parse(source))).collect();
            let b = cpu();
            let added: Vec<_> = mimes.iter().map(|(summary, mime)| Entry::new(summary.clone(), mime)).collect();
            let c = cpu();
            t_texts += added.iter().map(Entry::bytes).sum::<usize>();
            index.write(Changes { added, ..Changes::default() }).unwrap();
            t_write += cpu() - c;
            t_parse += b - a;
            t_entry += c - b;
        }
        let per = |t: f64| t * 1e6 / n as f64;
        println!(
            "{kind} N={n} BATCH={batch} CONFIG={} us/msg: parse {:.1} entry {:.1} write {:.1} total {:.1}; wall {:.1} s; text bytes/msg {}",
            env("CONFIG", ""),
            per(t_parse),
            per(t_entry),
            per(t_write),
            per(t_parse + t_entry + t_write),
            start.elapsed().as_secs_f64(),
            t_texts as u64 / n
        );
        index.close(MessageId::MAX).ok();
    }
    let c = rusqlite::Connection::open(dir.join("search.db")).unwrap();
    let mut s = c
        .prepare("SELECT name, sum(pgsize), sum(payload), sum(unused) FROM dbstat GROUP BY name ORDER BY 2 DESC")
        .unwrap();
    let mut rows = s.query([]).unwrap();
    while let Some(r) = rows.next().unwrap() {
        let (name, size, payload): (String, i64, i64) = (r.get(0).unwrap(), r.get(1).unwrap(), r.get(2).unwrap());
        if size > 100_000 {
            println!("  {name}: {:.1} B/msg (payload {:.1})", size as f64 / n as f64, payload as f64 / n as f64);
        }
    }
    println!("  file {:.1} B/msg", std::fs::metadata(dir.join("search.db")).unwrap().len() as f64 / n as f64);
    let mut reader = super::Reader::open(&dir).unwrap();
    let caller = std::sync::Arc::new(());
    for kind in ["cc", "cr", "rr", "phrase", "c*c*", "c*r*", "l*l*", "none"] {
        let mut times = Vec::new();
        let mut found = 0;
        for q in 0..300u64 {
            let mut rng = Rng(u64::MAX - q);
            let c = |rng: &mut Rng| word(3 + rng.next() % 27);
            let r = |rng: &mut Rng| word(5000 + rng.next() % 15000);
            let text = match kind {
                "cc" => format!("{} {}", c(&mut rng), c(&mut rng)),
                "cr" => format!("{} {}", c(&mut rng), r(&mut rng)),
                "rr" => format!("{} {}", r(&mut rng), r(&mut rng)),
                "phrase" => {
                    let g = Gen::new();
                    let b = g.body("zipf", rng.next() % n, 600).1;
                    let w: Vec<_> = b.split_whitespace().collect();
                    format!("\"{} {}\"", w[w.len() - 2], w[w.len() - 1])
                }
                "c*c*" => format!("{} {}", &c(&mut rng)[..3], &c(&mut rng)[..3]),
                "c*r*" => {
                    let w = r(&mut rng);
                    format!("{} {}", &c(&mut rng)[..3], &w[..w.len() - 1])
                }
                "l*l*" => format!("{} {}", &word(rng.next() % 16)[..1], &word(rng.next() % 16)[..1]),
                _ => format!("{} -{}", c(&mut rng), &word(rng.next() % 16)[..1]),
            };
            let query = crate::query::Query::parse(&text, Timestamp::UNIX_EPOCH).unwrap();
            let a = (Instant::now(), cpu());
            let m = reader
                .find(&super::IndexQuery {
                    query: &query,
                    mailbox: None,
                    is_permitted: &|_| true,
                    before: MessageId::MAX,
                    limit: 50,
                    matches_message: &|_, _| None,
                    deadline: Instant::now() + std::time::Duration::from_secs(60),
                    caller: std::sync::Arc::downgrade(&caller),
                })
                .unwrap();
            times.push((cpu() - a.1, a.0.elapsed().as_secs_f64()));
            found += m.messages.len();
        }
        times.sort_by(|a, b| a.0.partial_cmp(&b.0).unwrap());
        println!(
            "  {kind}: found {:.1} cpu ms p50 {:.2} p90 {:.2} p99 {:.2} max {:.2}",
            found as f64 / 300.0,
            times[150].0 * 1e3,
            times[270].0 * 1e3,
            times[297].0 * 1e3,
            times[299].0 * 1e3
        );
    }
}
