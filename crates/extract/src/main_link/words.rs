//! The words that speak for and against a link, in the languages of most messages. Case and accents do not count. An entry
//! matches at the start of a word; with a final dot it has to be the whole word. Scripts without spaces match anywhere.

use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// From this character on, scripts write words without spaces.
const FIRST_UNSPACED_CHAR: char = '\u{2e80}';
/// A text with more words is a sentence or a headline, not the text of a button.
const MAX_ACTION_WORDS: usize = 14;
/// In a longer text the action has to be among the first words.
const MAX_SHORT_WORDS: usize = 5;

/// How strongly a text asks the reader to follow the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// It is a step of a procedure: confirming, resetting, accepting.
    Strong,
    /// It shows something: viewing, opening, tracking.
    Weak,
}

/// Social networks and app stores. Messages link to them without asking to.
pub(super) const SOCIAL_HOSTS: [&str; 22] = [
    "facebook.com",
    "fb.com",
    "fb.me",
    "twitter.com",
    "x.com",
    "t.co",
    "instagram.com",
    "linkedin.com",
    "youtube.com",
    "youtu.be",
    "tiktok.com",
    "pinterest.com",
    "threads.net",
    "bsky.app",
    "mastodon.social",
    "xing.com",
    "vk.com",
    "wa.me",
    "t.me",
    "apps.apple.com",
    "itunes.apple.com",
    "play.google.com",
];

#[rustfmt::skip] // Several words per line.
const STRONG: &[&str] = &[
    // English
    "confirm", "verif", "validat", "reset", "activat", "accept", "approv", "authoriz", "authoris", "sign in",
    "sign me in", "log in", "login.", "log me in", "sign up", "set a password", "set password", "set your password",
    "set up", "choose a password", "choose your password", "create a password", "create password",
    "create your password", "change password", "change your password", "complete your", "complete the", "finish", "join.", "unlock",
    "restore", "recover", "rsvp.", "pay.", "respond.", "register.", "magic link", "renew",
    // German
    "bestätig", "verifizier", "zurücksetz", "aktivier", "annehmen", "anmelden", "einloggen", "freischalt", "bezahl",
    "beitreten", "registrier", "abschließ", "einlösen", "akzeptier", "passwort",
    // French
    "réinitialis", "activer", "accepter", "se connecter", "connexion", "connectez", "valider", "rejoindre",
    "rejoignez", "payer", "mot de passe", "finaliser", "vérifi",
    // Spanish, Portuguese, Italian
    "restablec", "acept", "iniciar sesión", "inicia sesión", "unirse", "únete", "pagar", "contraseña", "activa",
    "redefin", "ativ", "aceit", "entrar.", "senha", "conferm", "reimposta", "ripristin", "attiv", "accett", "accedi",
    "paga.", "completa la", "completa il",
    // Dutch
    "bevestig", "herstel", "activeer", "accepteer", "inloggen", "aanmelden", "wachtwoord", "betaal",
    // Polish, Czech
    "potwierd", "zweryfikuj", "zresetuj", "aktywuj", "zaakceptuj", "zaloguj", "hasło", "potvrd", "ověř", "aktivovat",
    "přihlás",
    // Swedish, Danish, Norwegian, Finnish
    "bekräft", "bekræft", "bekreft", "verifiera", "återställ", "nulstil", "tilbakestill", "aktivera", "aktiver",
    "logga in", "log ind", "logg inn", "vahvista", "aktivoi", "kirjaudu",
    // Turkish
    "onayla", "doğrula", "sıfırla", "etkinleştir", "giriş yap",
    // Russian, Ukrainian
    "подтверд", "сброс", "активир", "войти", "восстанов", "принять", "оплат", "підтверд", "увійти",
    // Arabic, Hebrew
    "تأكيد", "تحقق", "إعادة تعيين", "تفعيل", "אישור", "אימות", "איפוס",
    // Chinese, Japanese, Korean
    "确认", "確認", "验证", "驗證", "認証", "重置", "重設", "激活", "登录", "登入", "接受", "リセット", "再設定",
    "ログイン", "承認", "有効化", "登録", "확인", "인증", "재설정", "로그인", "활성화", "수락",
];

#[rustfmt::skip] // Several words per line.
const WEAK: &[&str] = &[
    // English
    "view", "see.", "open.", "show", "track", "download", "continue", "get started", "start.", "review.", "go to",
    "check", "watch", "read the message", "read message", "reply", "click here", "click below", "click the",
    "click on", "tap here", "follow the link", "follow this link", "use the link", "use this link", "visit the link",
    // German
    "ansehen", "anschauen", "anzeigen", "öffne", "verfolg", "herunterladen", "fortfahren", "starten", "klick", "zum.",
    "zur.", "einsehen",
    // French
    "voir", "consulter", "consultez", "afficher", "ouvrir", "suivre", "suivez", "télécharger", "continuer",
    "commencer", "accéder", "cliquez",
    // Spanish, Portuguese, Italian
    "ver.", "abrir", "seguir", "descargar", "continuar", "empezar", "consultar", "haz clic", "baixar", "acompanhar",
    "começar", "clique", "vedi", "visualizza", "apri.", "scarica", "continua", "inizia", "traccia", "clicca",
    // Dutch
    "bekijk", "volg.", "doorgaan", "klik",
    // Polish, Czech
    "zobacz", "otwórz", "pobierz", "śledź", "kliknij", "zobrazit", "otevřít", "sledovat",
    // Swedish, Danish, Norwegian, Finnish
    "visa.", "öppna", "följ", "ladda ner", "åbn", "vis.", "åpne", "se.", "avaa", "näytä",
    // Turkish
    "görüntüle", "aç.", "takip",
    // Russian, Ukrainian
    "открыть", "посмотреть", "перейти", "перейдите", "скачать", "отследить", "переглянути",
    // Arabic, Hebrew
    "عرض", "افتح", "צפה", "צפייה",
    // Chinese, Japanese, Korean
    "查看", "打开", "下载", "点击", "點擊", "表示", "見る", "開く", "ダウンロード", "クリック", "보기", "열기",
    "다운로드",
];

#[rustfmt::skip] // Several words per line.
const EXCLUDED: &[&str] = &[
    // English
    "unsubscrib", "unsub.", "opt out", "optout", "opt.out", "privacy", "terms", "imprint", "legal", "in your browser",
    "in browser", "in a browser", "view online", "view this email", "view this message", "view email",
    "online version", "web version", "webversion", "viewinbrowser", "preference", "notification settings",
    "email settings", "mail settings", "manage notifications", "manage subscription", "manage your subscription",
    "update your profile", "help center", "help centre", "get help", "need help", "support.", "contact us", "faq",
    "about us", "follow us", "forward this", "forward to", "forward.", "cookie", "copyright", "report this",
    "report abuse", "report spam", "decline", "reject", "deny.", "cancel", "not you", "wasn t you", "wasn t me",
    "no longer wish", "no longer want", "stop receiving", "mute.", "share.", "tweet", "careers",
    // German
    "abmeld", "abbestell", "austragen", "datenschutz", "impressum", "agb.", "nutzungsbedingungen", "im browser",
    "onlineversion", "online version", "webansicht", "einstellungen", "hilfe", "kontakt", "ablehnen", "stornieren",
    "weiterleiten", "widerruf",
    // French
    "désinscri", "désabonn", "confidentialité", "mentions légales", "conditions", "dans votre navigateur",
    "version en ligne", "préférences", "aide.", "contactez", "refuser", "annuler",
    // Spanish, Portuguese, Italian
    "baja.", "darse de baja", "cancelar", "privacidad", "aviso legal", "términos", "en el navegador", "en línea",
    "preferencias", "ayuda", "rechazar", "descadastr", "privacidade", "termos", "no navegador", "recusar", "ajuda",
    "disiscri", "annulla", "termini", "nel browser", "rifiuta", "preferenze", "assistenza",
    // Dutch
    "afmelden", "uitschrijven", "voorwaarden", "in je browser", "in uw browser", "voorkeuren", "weigeren",
    "annuleren",
    // Polish, Czech
    "wypisz", "rezygn", "prywatności", "regulamin", "w przeglądarce", "odrzuć", "anuluj", "odhlásit", "podmínky",
    "v prohlížeči",
    // Swedish, Danish, Norwegian, Finnish
    "avregistrer", "avprenumerer", "afmeld", "avmeld", "integritet", "villkor", "vilkår", "i webbläsaren",
    "i browseren", "i nettleseren", "avsluta", "peruuta", "tietosuoja",
    // Turkish
    "abonelikten", "gizlilik", "tarayıcı", "reddet",
    // Russian, Ukrainian
    "отписат", "отписк", "конфиденциальн", "в браузере", "отклон", "отмен", "відписат", "настройки",
    // Arabic, Hebrew
    "إلغاء", "الخصوصية", "הסרה", "פרטיות",
    // Chinese, Japanese, Korean
    "退订", "取消", "隐私", "隱私", "条款", "條款", "浏览器", "瀏覽器", "配信停止", "退会", "プライバシー",
    "利用規約", "ブラウザ", "お問い合わせ", "拒否", "拒绝", "수신거부", "수신 거부", "구독 취소", "개인정보", "약관",
    "거절", "브라우저",
];

/// The words of texts such as "click here": a text of only these says nothing about the link.
#[rustfmt::skip] // Several words per line.
const GENERIC: &[&str] = &[
    "here", "click", "tap", "press", "link", "this", "the", "following", "below", "now", "please", "on", "it",
    "button", "hier", "klicken", "klicke", "sie", "diesen", "diesem", "bitte", "ici", "cliquez", "cliquer", "ce",
    "lien", "aqui", "haz", "clic", "clique", "en", "este", "enlace", "qui", "clicca", "questo", "klik", "deze",
    "tutaj", "kliknij", "zde", "har", "klicka", "her", "tasta", "tiklayin", "buraya", "здесь", "тут", "ссылка", "هنا",
    "כאן", "这里", "這裡", "点击这里", "こちら", "여기", "링크",
];

/// The first words of headlines, which ask or explain and do not ask to follow the link.
#[rustfmt::skip] // Several words per line.
const HEADLINES: &[&str] = &[
    "how.", "why.", "what.", "when.", "who.", "wie.", "warum.", "was.", "wann.", "comment.", "pourquoi.", "cómo.",
    "por qué", "como.", "come.", "perché.", "hoe.", "jak.", "hur.", "как.", "почему.",
];

/// A list of words, folded once.
struct WordList(LazyLock<Vec<String>>);

static STRONG_WORDS: WordList = WordList(LazyLock::new(|| fold_entries(STRONG)));
static WEAK_WORDS: WordList = WordList(LazyLock::new(|| fold_entries(WEAK)));
static EXCLUDED_WORDS: WordList = WordList(LazyLock::new(|| fold_entries(EXCLUDED)));
static GENERIC_WORDS: WordList = WordList(LazyLock::new(|| fold_entries(GENERIC)));
static HEADLINE_WORDS: WordList = WordList(LazyLock::new(|| fold_entries(HEADLINES)));

/// A text in lower case without accents. Its words are separated by one space, and there is a space before the first and
/// after the last one.
pub(super) struct FoldedText(String);

impl FoldedText {
    pub(super) fn new(text: &str) -> Self {
        Self(fold(text))
    }

    /// Returns whether there is no word in the text.
    pub(super) fn is_empty(&self) -> bool {
        self.0.trim().is_empty()
    }

    /// Returns whether the text contains a word that excludes the link.
    pub(super) fn is_excluded(&self) -> bool {
        EXCLUDED_WORDS.is_in(&self.0)
    }

    /// Returns whether the text consists only of words such as "here".
    pub(super) fn is_generic(&self) -> bool {
        let is_generic = |word: &str| GENERIC_WORDS.0.iter().any(|generic| generic.trim() == word);
        self.0.split_whitespace().all(is_generic)
    }

    /// Returns what the text asks the reader to do.
    pub(super) fn action(&self) -> Option<Action> {
        let words = self.0.split_whitespace().count();
        if words > MAX_ACTION_WORDS || HEADLINE_WORDS.starts(&self.0) {
            return None;
        }
        // The text up to the end of the last word that counts.
        let end = self.0.match_indices(' ').nth(MAX_SHORT_WORDS).filter(|_| words > MAX_SHORT_WORDS + 3);
        let start = end.map_or(self.0.as_str(), |(at, _)| &self.0[..=at]);
        if STRONG_WORDS.is_in(start) {
            Some(Action::Strong)
        } else if WEAK_WORDS.is_in(start) {
            Some(Action::Weak)
        } else {
            None
        }
    }
}

impl WordList {
    fn is_in(&self, folded: &str) -> bool {
        self.0.iter().any(|entry| folded.contains(entry.as_str()))
    }

    fn starts(&self, folded: &str) -> bool {
        self.0.iter().any(|entry| folded.starts_with(entry.as_str()))
    }
}

/// Folds the entries of a list. A space before an entry makes it match only at the start of a word.
fn fold_entries(entries: &[&str]) -> Vec<String> {
    let fold_entry = |entry: &&str| {
        let folded = fold(entry);
        let folded = if entry.ends_with('.') { folded.as_str() } else { folded.trim_end() };
        let is_unspaced = entry.starts_with(|c| c >= FIRST_UNSPACED_CHAR);
        if is_unspaced { folded.trim().to_owned() } else { folded.to_owned() }
    };
    entries.iter().map(fold_entry).collect()
}

fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len() + 2);
    folded.push(' ');
    for c in text.nfkd().filter(|c| !is_combining_mark(*c)).flat_map(char::to_lowercase) {
        if c.is_alphanumeric() {
            folded.push(c);
        } else if !folded.ends_with(' ') {
            folded.push(' ');
        }
    }
    if !folded.ends_with(' ') {
        folded.push(' ');
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_texts() {
        let table = [
            ("", " "),
            ("Confirm!", " confirm "),
            ("  E-Mail  bestätigen » ", " e mail bestatigen "),
            ("Réinitialiser", " reinitialiser "),
            ("ログイン", " ロクイン "),
        ];
        for (text, folded) in table {
            assert_eq!(fold(text), folded, "{text}");
        }
    }

    #[test]
    fn finds_actions() {
        let table = [
            ("Confirm your e-mail address", Some(Action::Strong)),
            ("Passwort zurücksetzen", Some(Action::Strong)),
            ("ログインする", Some(Action::Strong)),
            ("이메일 인증하기", Some(Action::Strong)),
            ("View order", Some(Action::Weak)),
            ("Suivre mon colis", Some(Action::Weak)),
            ("Click here to confirm your subscription to our weekly letter", Some(Action::Strong)),
            ("How to reset your sleep schedule", None),
            ("The committee that wrote this long report will meet again to approve it", None),
            ("Our blog", None),
            ("unconfirmed", None),
            ("Payment terms", None),
        ];
        for (text, action) in table {
            assert_eq!(FoldedText::new(text).action(), action, "{text}");
        }
    }

    #[test]
    fn generic_and_excluded_texts() {
        for text in ["here", "Click here", "hier klicken", "ici", "こちら", "this link", ""] {
            assert!(FoldedText::new(text).is_generic(), "{text}");
        }
        for text in [
            "Unsubscribe",
            "E-Mail abmelden",
            "Se désinscrire",
            "View in browser",
            "AGB",
            "取消订阅",
            "개인정보 처리방침",
        ] {
            assert!(FoldedText::new(text).is_excluded(), "{text}");
        }
        for text in ["Confirm", "View report", "Opening hours", "Agbar"] {
            assert!(!FoldedText::new(text).is_generic() && !FoldedText::new(text).is_excluded(), "{text}");
        }
    }

    #[test]
    fn lists_have_no_blank_entries() {
        for list in [&STRONG_WORDS, &WEAK_WORDS, &EXCLUDED_WORDS, &GENERIC_WORDS, &HEADLINE_WORDS] {
            assert!(list.0.iter().all(|entry| !entry.trim().is_empty()));
        }
    }
}
