// A dialog that shows the attachments of a message one after another: images, PDF and texts.

/** @import { Attachment, Message } from '../../types.js' */

import * as api from '../../lib/api.js';
import { copy } from '../../lib/clipboard.js';
import { fill, h } from '../../lib/dom.js';
import { count, size } from '../../lib/format.js';
import { icon } from '../../lib/icons.js';
import { visible } from '../../lib/visible.js';
import { attachmentKind } from './attachment-kind.js';
import { attachmentLinks } from './attachment-links.js';

/**
 * Opens the viewer.
 * @param {Message} message
 * @param {Attachment[]} all Attachments that can be shown.
 * @param {Attachment} first
 */
export function openViewer(message, all, first) {
  let at = Math.max(0, all.indexOf(first));
  let request = new AbortController();
  const closed = new AbortController();
  const title = h('h2', { class: 'viewer-title truncate' });
  const facts = h('div', { class: 'viewer-facts soft' });
  const tools = h('div', { class: 'viewer-tools' });
  const stage = h('div', { class: 'viewer-stage' });
  const keys = h('p', { class: 'viewer-keys truncate', hidden: true }, 'The file has the keyboard focus. Click here to leave it.');
  const position = h('span', { class: 'soft number', role: 'status' });
  const close = h('button', { class: 'button plain', type: 'button', 'aria-label': 'Close', title: 'Close (Esc)', onclick: () => dialog.close() }, icon('close'));
  const step = (/** @type {number} */ by) => {
    if (at + by < 0 || at + by >= all.length) return;
    at += by;
    draw();
  };
  const previous = h('button', { class: 'button plain', type: 'button', 'aria-label': 'Previous attachment', title: 'Previous (←)', onclick: () => step(-1) }, icon('back'));
  const next = h('button', { class: 'button plain', type: 'button', 'aria-label': 'Next attachment', title: 'Next (→)', onclick: () => step(1) }, icon('forward'));
  const dialog = h('dialog', { class: 'modal viewer', 'aria-label': 'Attachment' },
    h('header', { class: 'viewer-head' }, h('div', { class: 'viewer-words' }, title, facts), keys, tools, close),
    stage,
    all.length > 1 && h('footer', { class: 'viewer-foot' }, previous, position, next));

  const draw = () => {
    request.abort();
    request = new AbortController();
    const attachment = all[at];
    const { download } = attachmentLinks(message, attachment);
    const name = visible(attachment.filename);
    const isReplaced = stage.contains(document.activeElement) || tools.contains(document.activeElement);
    fill(title, h('bdi', {}, name));
    dialog.setAttribute('aria-label', name);
    fill(facts, h('bdi', {}, visible(attachment['content-type'])), h('span', { class: 'number' }, size(attachment.size)));
    fill(tools,
      h('button', { class: 'button small', type: 'button', title: attachment.md5, 'aria-label': `Copy the MD5 checksum ${attachment.md5}`, onclick: () => copy(attachment.md5, 'MD5 checksum copied') }, icon('copy'), 'MD5'),
      h('a', { class: 'button small', href: download, download: true, 'aria-label': `Download ${name}` }, icon('download'), 'Download'));
    position.textContent = `${count(at + 1)} of ${count(all.length)}`;
    // Not `disabled`, because the button may have the focus.
    for (const [button, isEnd] of /** @type {const} */ ([[previous, at === 0], [next, at === all.length - 1]])) button.setAttribute('aria-disabled', String(isEnd));
    fill(stage, content(message, attachment, request.signal));
    // Keys reach the dialog only if the focus is in it.
    if (isReplaced) close.focus();
  };
  // No key in a frame reaches the dialog.
  const updateKeys = (/** @type {Event} */ { type }) => (keys.hidden = type === 'focus' || !stage.contains(document.activeElement));

  dialog.addEventListener('click', (event) => event.target === dialog && dialog.close());
  dialog.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || isScrolling(event.target)) return;
    if (event.key === 'ArrowLeft' || event.key === 'ArrowRight') step(event.key === 'ArrowLeft' ? -1 : 1);
  });
  dialog.addEventListener('close', () => {
    request.abort();
    closed.abort();
    dialog.remove();
  });
  window.addEventListener('blur', updateKeys, { signal: closed.signal });
  window.addEventListener('focus', updateKeys, { signal: closed.signal });
  draw();
  document.body.append(dialog);
  dialog.showModal();
  close.focus();
}

/**
 * Returns whether arrow keys scroll the focused element: a text, or an image in its own size.
 * @param {EventTarget | null} target
 */
const isScrolling = (target) => target instanceof Element && target.matches('.viewer-text, .viewer-image.zoomed');

/**
 * @param {Message} message
 * @param {Attachment} attachment
 * @param {AbortSignal} signal
 */
function content(message, attachment, signal) {
  const { view } = attachmentLinks(message, attachment);
  switch (attachmentKind(attachment)) {
    case 'image': return image(view, visible(attachment.filename));
    case 'pdf': return pdf(view, visible(attachment.filename));
    default: return text(view, attachment, signal);
  }
}

/**
 * An image that fits into the window; a click shows it in its own size.
 * @param {string} view
 * @param {string} name
 */
function image(view, name) {
  const button = h('button', { class: 'viewer-image', type: 'button', 'aria-pressed': 'false', 'aria-label': `Show ${name} in its own size`, title: 'Zoom', onclick: () => {
    button.setAttribute('aria-pressed', String(button.classList.toggle('zoomed')));
  } }, h('img', { src: view, alt: name, onerror: () => button.replaceWith(failed('The image cannot be displayed. Download it instead.')) }));
  return button;
}

/**
 * @param {string} view
 * @param {string} name
 */
function pdf(view, name) {
  if (navigator.pdfViewerEnabled === false) return failed('This browser cannot show PDF files in a page. Download the file instead.');
  return h('iframe', { class: 'viewer-pdf', src: view, title: name });
}

/**
 * @param {string} view
 * @param {Attachment} attachment
 * @param {AbortSignal} signal
 */
function text(view, attachment, signal) {
  const block = h('pre', { class: 'viewer-text', tabindex: 0, role: 'group', 'aria-label': visible(attachment.filename) });
  const charset = /;\s*charset\s*=\s*"?([\w.:-]+)/iu.exec(attachment['content-type'])?.[1] ?? 'utf-8';
  api.text(view, signal, charset).then((words) => (block.textContent = words.replaceAll('\r\n', '\n')), (error) => signal.aborted || block.replaceWith(failed(api.sentence(error))));
  return block;
}

/** @param {string} sentence */
const failed = (sentence) => h('p', { class: 'viewer-failed', role: 'alert' }, sentence);
