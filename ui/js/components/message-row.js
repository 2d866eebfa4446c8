// A row of the list of messages: sender, recipients, time, subject, first words, tags. Rows are reused for other messages, so their
// elements are created once. The style sheet arranges them in one line or in several, depending on the width of the list.

/** @import { Entry } from '../lib/entries.js' */
/** @import { Summary } from '../types.js' */

import { address, count, plural, size } from '../lib/format.js';
import { fill, h, set } from '../lib/dom.js';
import { icon } from '../lib/icons.js';
import { colorTag } from '../lib/tags.js';
import { visible } from '../lib/visible.js';
import { TimeAgo } from './time-ago.js';

const MAX_TAGS = 3;
/** The maximum number of recipients in the tooltip. */
const MAX_RECIPIENTS = 20;

/** @type {WeakMap<HTMLElement, ReturnType<typeof parts>>} */
const rowParts = new WeakMap();
/** The values that each row shows. Most redraws change nothing. @type {WeakMap<HTMLElement, unknown[]>} */
const drawn = new WeakMap();

/**
 * @param {HTMLElement} row
 * @param {Entry} entry
 * @param {{ isSelected: boolean, hasRecipients: boolean, mark: (text: string) => (string | Node)[] }} options `hasRecipients` is true if the row shows
 *   the recipients; `mark` marks the words of the query.
 */
export function drawMessage(row, { summary, seen, millis }, { isSelected, hasRecipients, mark }) {
  const now = [summary, seen, isSelected, hasRecipients, mark];
  if (drawn.get(row)?.every((value, index) => value === now[index])) return;
  drawn.set(row, now);
  const { dot, sender, to, bytes, time, subject, snippet, tags, clip } = rowParts.get(row) ?? build(row);
  row.classList.toggle('unread', !seen);
  row.ariaSelected = String(isSelected);
  set(dot, { role: !seen && 'img', 'aria-label': !seen && 'Unread' });
  const from = address(summary.from);
  fill(sender, h('bdi', {}, visible(from.name) || '(no sender)'));
  sender.title = visible(from.address) || 'The sender is empty';
  to.hidden = !hasRecipients;
  row.classList.toggle('without-to', !hasRecipients);
  if (hasRecipients) drawRecipients(to, summary);
  const subjectText = visible(summary.subject).trim();
  fill(subject, h('bdi', {}, ...(subjectText ? mark(subjectText) : ['(no subject)'])));
  subject.classList.toggle('soft', !subjectText);
  drawWords(snippet, summary);
  time.millis = millis;
  bytes.textContent = size(summary.size);
  drawTags(tags, summary.tags);
  const attachments = plural(summary.attachments, 'attachment');
  set(clip, { class: summary.attachments ? 'row-clip' : 'row-clip none', 'aria-label': attachments, title: attachments });
}

/**
 * @param {HTMLElement} element
 * @param {Summary} summary
 */
function drawRecipients(element, { recipients, to }) {
  const all = recipients.length > 0 ? recipients : to.map((one) => address(one).address);
  const [first = ''] = all;
  fill(element, h('span', { class: 'truncate' }, h('bdi', {}, visible(first))), all.length > 1 && h('span', { class: 'row-more' }, ` +${count(all.length - 1)}`));
  const listed = all.slice(0, MAX_RECIPIENTS).map(visible).join('\n');
  element.title = all.length > MAX_RECIPIENTS ? `${listed}\nand ${count(all.length - MAX_RECIPIENTS)} more` : listed;
}

/**
 * Shows the words around the matches of a query, or the first words of the text.
 * @param {HTMLElement} element
 * @param {Summary} summary
 */
function drawWords(element, { excerpt, snippet }) {
  if (excerpt && excerpt.length > 0) fill(element, h('bdi', {}, excerpt.map(({ text, hit }) => (hit ? h('mark', {}, visible(text)) : visible(text)))));
  else fill(element, h('bdi', {}, visible(snippet)));
}

/**
 * @param {HTMLElement} element
 * @param {string[]} tags
 */
function drawTags(element, tags) {
  const rest = tags.length - MAX_TAGS;
  fill(element, tags.slice(0, MAX_TAGS).map((tag) => colorTag(h('span', { class: 'tag truncate' }, h('bdi', {}, visible(tag))), tag)), rest > 0 && h('span', {}, `+${count(rest)}`));
  element.title = tags.map(visible).join(', ');
  element.hidden = tags.length === 0;
}

/** @param {HTMLElement} row */
function build(row) {
  const all = parts();
  row.classList.add('message-row');
  row.replaceChildren(
    h('span', { class: 'row-check', title: 'Select (x)' }, all.dot, h('span', { class: 'row-box' })),
    h('span', { class: 'row-people' }, all.sender, all.to),
    all.time,
    h('span', { class: 'row-words' }, all.subject, all.snippet),
    h('span', { class: 'row-facts' }, all.tags, all.clip, all.bytes),
  );
  rowParts.set(row, all);
  return all;
}

function parts() {
  const time = TimeAgo.create(0);
  time.className = 'row-time number';
  return {
    dot: h('span', { class: 'row-dot' }),
    sender: h('span', { class: 'row-sender truncate' }),
    to: h('span', { class: 'row-to' }),
    bytes: h('span', { class: 'row-size number' }),
    time,
    subject: h('span', { class: 'row-subject truncate' }),
    snippet: h('span', { class: 'row-snippet truncate' }),
    tags: h('span', { class: 'row-tags' }),
    clip: h('span', { class: 'row-clip none', role: 'img' }, icon('attachment')),
  };
}
