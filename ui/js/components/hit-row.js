// A search result: sender, mailbox, time, subject and an excerpt with the matching words.

/** @import { Hit } from '../types.js' */

import * as paths from '../lib/paths.js';
import { h } from '../lib/dom.js';
import { address } from '../lib/format.js';
import { visible } from '../lib/visible.js';
import { TimeAgo } from './time-ago.js';

/** @param {Hit} hit */
export function hitRow({ mailbox, id, from, subject, seen, snippet, 'posix-millis': millis }) {
  const [box, sender, about] = [mailbox, address(from).name, subject].map((text) => visible(text).trim());
  const time = TimeAgo.create(millis);
  time.className = 'hit-time soft number';
  return h('li', { class: seen ? 'hit' : 'hit unread' },
    h('span', { class: 'hit-from truncate', title: visible(from) }, !seen && h('span', { class: 'hidden' }, 'Unread, '), h('bdi', {}, sender || '(no sender)')),
    h('a', { class: 'hit-mailbox truncate', href: paths.mailbox(mailbox), title: `Mailbox ${box}` }, h('bdi', {}, box)),
    time,
    h('a', { class: 'hit-link', href: paths.mailbox(mailbox, id) }, h('bdi', {}, about || '(no subject)')),
    snippet.length > 0 && h('p', { class: 'hit-snippet soft', dir: 'auto' }, snippet.map(({ text, hit }) => (hit ? h('mark', {}, visible(text)) : visible(text)))));
}
