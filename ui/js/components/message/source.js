// <message-source>: the source of a message, with the names of the header fields highlighted.

/** @import { Message } from '../../types.js' */
/** @import { Highlighter, Row } from './source-panel.js' */

import * as api from '../../lib/api.js';
import * as paths from '../../lib/paths.js';
import { h } from '../../lib/dom.js';
import { icon } from '../../lib/icons.js';
import { fileName } from './downloads.js';
import { SourcePanel } from './source-panel.js';

export class MessageSource extends SourcePanel {
  /** @param {Message} message */
  constructor(message) {
    const { id } = message;
    super({
      label: 'Source',
      pref: 'source.wrap',
      wrapped: false,
      download: h('a', { class: 'button small', href: paths.source(id, { download: true }), download: fileName(message, 'eml'), title: 'Download .eml', 'aria-label': 'Download .eml' }, icon('download')),
      load: (signal) => api.source(id, signal),
      highlighter,
    });
  }
}

/**
 * @param {string} source
 * @param {Row[][]} chunks
 * @returns {Highlighter}
 */
function highlighter(source, chunks) {
  const end = /\r?\n\r?\n/u.exec(source)?.index ?? source.length;
  return (at) => chunks[at].map((row) => {
    const text = source.slice(row.start, row.end);
    if (row.start >= end) return { nodes: [text] };
    const name = row.number === null ? '' : /^[!-9;-~]+:/u.exec(text)?.[0] ?? '';
    return { nodes: [name && h('b', {}, name), text.slice(name.length)], kind: 'head' };
  });
}

customElements.define('message-source', MessageSource);
