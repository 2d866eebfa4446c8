// A row of the list of messages: sender, time, subject, state. Rows are reused for other messages, so their elements are created
// once.

/** @import { Entry } from '../lib/entries.js' */

import { address, exact, plural, size } from '../lib/format.js';
import { fill, h } from '../lib/dom.js';
import { icon } from '../lib/icons.js';
import { visible } from '../lib/visible.js';
import { TimeAgo } from './time-ago.js';

/** @type {WeakMap<HTMLElement, ReturnType<typeof parts>>} */
const rowParts = new WeakMap();
/** The values that each row shows. Most redraws change nothing. @type {WeakMap<HTMLElement, unknown[]>} */
const drawn = new WeakMap();

/**
 * @param {HTMLElement} row
 * @param {Entry} entry
 * @param {boolean} isSelected
 */
export function drawMessage(row, entry, isSelected) {
  const now = [entry, entry.seen, entry.attachments, isSelected];
  if (drawn.get(row)?.every((value, index) => value === now[index])) return;
  drawn.set(row, now);
  const { from, size: bytes, 'posix-millis': millis } = entry.summary;
  const { sender, subjectCell, time, sizeCell, clip } = rowParts.get(row) ?? build(row);
  const parsed = address(from);
  const [name, subject] = [visible(parsed.name), visible(entry.summary.subject).trim()];
  row.classList.toggle('unread', !entry.seen);
  row.ariaSelected = String(isSelected);
  fill(sender, h('bdi', {}, name || '(no sender)'));
  sender.title = visible(parsed.address) || 'The sender is empty';
  fill(subjectCell, h('bdi', {}, subject || '(no subject)'));
  subjectCell.classList.toggle('soft', !subject);
  time.millis = millis;
  sizeCell.textContent = size(bytes);
  clip.setAttribute('class', entry.attachments ? 'row-clip' : 'row-clip none');
  clip.title = entry.attachments ? `${plural(entry.attachments, 'attachment')}` : '';
  row.ariaLabel = [
    !entry.seen && 'Unread', name || 'no sender', subject || 'no subject', exact(millis), size(bytes), entry.attachments && `${plural(entry.attachments, 'attachment')}`,
  ].filter(Boolean).join(', ');
}

/** @param {HTMLElement} row */
function build(row) {
  const all = parts();
  row.classList.add('message-row');
  row.replaceChildren(
    h('span', { class: 'row-check', title: 'Select (x)' }, h('span', { class: 'row-dot' }), h('span', { class: 'row-box' }, icon('check'))),
    all.sender, all.time, all.subjectCell, h('span', { class: 'row-facts' }, all.clip, all.sizeCell),
  );
  rowParts.set(row, all);
  return all;
}

function parts() {
  const time = TimeAgo.create(0);
  time.className = 'row-time number';
  return {
    sender: h('span', { class: 'row-sender truncate' }),
    subjectCell: h('span', { class: 'row-subject truncate' }),
    time,
    sizeCell: h('span', { class: 'row-size number' }),
    clip: h('span', { class: 'row-clip none' }, icon('attachment')),
  };
}
