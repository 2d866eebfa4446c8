// The language of searches, on half a page. What it means is decided by the server; this is for people.

import { h } from '../lib/dom.js';

/** @type {[string[], string][]} */
const TERMS = [
  [['code login'], 'both words, in the subject, the text, the sender or the recipients'],
  [['"your code"'], 'these words one behind the other'],
  [['log*'], 'words that begin so'],
  [['from:ann', 'to:bob@x.org', 'cc:', 'subject:', 'body:'], 'only there'],
  [['has:attachment', 'filename:invoice*'], 'attachments, also by name'],
  [['header:X-Mailer', 'header:X-Run=7'], 'a header field, also by what it says'],
  [['mailbox:james', 'mailbox:ci-*'], 'in these mailboxes'],
  [['is:unseen', 'is:seen'], 'read or not'],
  [['after:2h', 'before:2026-11-15', 'after:today'], 'when it was received; days are those of UTC'],
  [['larger:10k', 'smaller:2M'], 'how large it is'],
  [['-draft', '-from:ann'], 'without that'],
  [['alice or bob', '(a or b) code'], 'one of the two'],
];

/** @param {boolean} isOpen */
export function searchHelp(isOpen) {
  return h('details', { class: 'search-help', open: isOpen },
    h('summary', {}, 'What can be searched for'),
    h('dl', {}, TERMS.map(([terms, meaning]) => h('div', {}, h('dt', {}, terms.flatMap((term) => [h('code', {}, term), ' '])), h('dd', { class: 'soft' }, meaning)))),
    h('p', { class: 'soft' }, 'Neither case nor accents matter. Several terms must all fit.'));
}
