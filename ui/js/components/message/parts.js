// <message-parts>: the tree of the MIME parts of a message, and its problems.

/** @import { Message, Part } from '../../types.js' */

import * as paths from '../../lib/paths.js';
import { copy } from '../../lib/clipboard.js';
import { fill, h } from '../../lib/dom.js';
import { plural, size } from '../../lib/format.js';
import { visible } from '../../lib/visible.js';
import { SAVE_ONLY, attachmentLinks, mayOpen } from './attachment-links.js';
import { scroller } from './controls.js';
import { defectList, problems } from './defects.js';
import { tableRow, withShowMore } from './show-more.js';

const FIRST_ROWS = 200;

/** Deeper parts are not indented further. */
const MAX_INDENT = 10;

/** @type {Record<string, string>} */
const ROLES = { multipart: 'Container', text: 'Text', html: 'HTML', attachment: 'Attachment' };

export class MessageParts extends HTMLElement {
  #message;

  /** @param {Message} message */
  constructor(message) {
    super();
    this.#message = message;
  }

  connectedCallback() {
    if (this.firstChild) return;
    const { parts } = this.#message;
    const defects = problems(this.#message.defects);
    const titles = ['Part', 'Use', 'Encoding', 'Charset', 'Disposition', 'Size'].map((title) => h('th', { scope: 'col' }, title));
    const rows = h('tbody', {}, withShowMore([...parts.entries()], ([index, part]) => this.#row(part, index), { first: FIRST_ROWS, wrap: tableRow(titles.length) }));
    const body = scroller('Parts', 'message-parts');
    fill(body,
      h('table', {}, h('caption', { class: 'hidden' }, 'Parts of the message'), h('thead', {}, h('tr', {}, titles)), rows),
      h('section', { class: 'part-defects' }, h('h2', {}, defects.length > 0 ? plural(defects.length, 'problem') : 'No problems'), defects.length > 0 ? defectList(defects) : h('p', { class: 'soft' }, 'This message is well-formed.')));
    fill(this, body);
  }

  /**
   * @param {Part} part
   * @param {number} index
   */
  #row(part, index) {
    const name = part.filename !== null && h('bdi', { class: 'part-name' }, visible(part.filename));
    const id = part['content-id'] !== null && h('bdi', { class: 'mono' }, `cid:${visible(part['content-id'])}`);
    const first = h('td', { class: 'part-type' },
      h('span', { class: 'hidden' }, `Level ${part.depth + 1}: `),
      h('bdi', { class: 'mono' }, visible(part['content-type'])),
      h('div', { class: 'part-more' }, name, id, this.#links(part, index)));
    const facts = [ROLES[part.role] ?? part.role, part.encoding, part.charset, part.disposition].map((fact) => h('td', {}, fact === null ? h('span', { class: 'soft none' }, '–') : h('bdi', {}, visible(fact))));
    const row = h('tr', {}, first, facts, h('td', { class: 'number' }, size(part.size)));
    row.style.setProperty('--depth', String(Math.min(part.depth, MAX_INDENT)));
    return row;
  }

  /**
   * Returns the links of a part. An attachment is downloaded under its file name, other parts under their number.
   * @param {Part} part
   * @param {number} index
   */
  #links(part, index) {
    const { id, attachments } = this.#message;
    const attachment = attachments.find((one) => one.index === part.attachment);
    const path = paths.part(id, index);
    const { view, download, mayOpen: isOpenable } = attachment ? attachmentLinks(this.#message, attachment) : { view: path, download: path, mayOpen: mayOpen(part) };
    // Browsers cannot display a container.
    const isShown = isOpenable && part.role !== 'multipart';
    const name = visible(part.filename ?? `part ${index}`);
    return h('span', { class: 'part-links' },
      isShown && h('a', { href: view, target: '_blank', rel: 'noopener noreferrer', 'aria-label': `Open ${name}` }, 'Open'),
      h('a', { href: download, download: attachment ? true : `part-${index}`, title: isOpenable ? null : SAVE_ONLY, 'aria-label': `Download ${name}` }, 'Download'),
      attachment && h('button', { class: 'more', type: 'button', title: attachment.md5, 'aria-label': `Copy MD5 checksum of ${name}`, onclick: () => copy(attachment.md5, 'MD5 checksum copied') }, 'Copy MD5'));
  }
}

customElements.define('message-parts', MessageParts);
