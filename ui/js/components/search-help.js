// A short reference of the search language. The server parses it.

import { h } from '../lib/dom.js';

/** @type {[string[], string][]} */
const TERMS = [
  [['code log'], 'words that start with these, in the subject, text, sender or recipients'],
  [['"your code"'], 'exactly these words, in this order'],
  [['from:ann', 'to:bob@x.org', 'cc:', 'subject:', 'body:'], 'only in this field'],
  [['has:attachment', 'filename:invoice'], 'messages with attachments, or with this file name'],
  [['header:X-Mailer', 'header:X-Run=7'], 'messages with this header field, or with this value'],
  [['mailbox:james', 'mailbox:ci-*'], 'only in these mailboxes'],
  [['tag:run7', 'tag:"smoke test"'], 'messages with this tag'],
  [['is:unseen', 'is:seen'], 'unread or read'],
  [['after:2h', 'before:2026-11-15', 'after:today'], 'by time of arrival; days are in UTC'],
  [['larger:10k', 'smaller:2M'], 'by size'],
  [['-draft', '-from:ann'], 'not matching this term'],
  [['alice or bob', '(a or b) code'], 'at least one of the terms'],
];

/** @param {boolean} isOpen */
export function searchHelp(isOpen) {
  return h('details', { class: 'search-help', open: isOpen },
    h('summary', {}, 'Search syntax'),
    h('dl', {}, TERMS.map(([terms, meaning]) => h('div', {}, h('dt', {}, terms.flatMap((term) => [h('code', {}, term), ' '])), h('dd', { class: 'soft' }, meaning)))),
    h('p', { class: 'soft' }, 'Case and accents are ignored. A message must match all terms.'));
}
