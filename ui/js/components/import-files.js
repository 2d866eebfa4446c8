// Imports `.eml` files that are dropped on a list of messages or selected in a dialog of the browser.

import * as api from '../lib/api.js';
import { fill, h } from '../lib/dom.js';
import { openDialog, toast } from '../lib/feedback.js';
import { count, plural } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { visible } from '../lib/visible.js';

/** The beginning of a file in which the recipients are searched. */
const HEADER_BYTES = 65_536;
const MAX_RECIPIENTS = 50;
const ADDRESS = /[^\s<>,;:"()@]{1,320}@[^\s<>,;:"()@]{1,320}/gu;

/**
 * Imports the files that are dropped on an element, until the signal is aborted.
 * @param {HTMLElement} element
 * @param {() => string | null} mailbox Returns the mailbox of the files, or null if their recipients decide.
 * @param {AbortSignal} signal
 */
export function importDroppedFiles(element, mailbox, signal) {
  const overlay = h('div', { class: 'drop-overlay', hidden: true });
  element.append(overlay);
  const show = (/** @type {boolean} */ isShown) => {
    const name = mailbox();
    overlay.hidden = !isShown;
    fill(overlay, h('p', {}, icon('download'), h('bdi', {}, `Drop .eml files to import them${name === null ? '' : ` into ${visible(name)}`}`)));
  };
  const on = (/** @type {'dragenter' | 'dragover' | 'dragleave' | 'drop'} */ name, /** @type {(event: DragEvent) => void} */ run) => element.addEventListener(name, (event) => {
    if (!event.dataTransfer?.types.includes('Files')) return;
    event.preventDefault();
    run(event);
  }, { signal });
  on('dragenter', () => overlay.hidden && show(true));
  on('dragover', ({ dataTransfer }) => dataTransfer && (dataTransfer.dropEffect = 'copy'));
  on('dragleave', ({ relatedTarget }) => relatedTarget instanceof Node && element.contains(relatedTarget) || show(false));
  on('drop', ({ dataTransfer }) => {
    show(false);
    importFiles([...(dataTransfer?.files ?? [])], mailbox());
  });
}

/** Ignores files that are dropped elsewhere: a browser would open them in place of the page. */
export function ignoreOtherDrops() {
  for (const name of /** @type {const} */ (['dragover', 'drop'])) document.addEventListener(name, (event) => {
    if (event.defaultPrevented || !event.dataTransfer?.types.includes('Files')) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = 'none';
  });
}

/** Creates a button that imports files without dragging. */
export function importButton() {
  const picker = h('input', { class: 'hidden', type: 'file', accept: '.eml,message/rfc822', multiple: true, 'aria-label': 'Import .eml files', tabindex: -1, onchange: () => {
    importFiles([...(picker.files ?? [])], null);
    picker.value = '';
  } });
  return h('span', {}, h('button', { class: 'button import', type: 'button', onclick: () => picker.click() }, icon('download'), 'Import .eml files'), picker);
}

/**
 * Imports files one after the other. A dialog shows the progress, and then the files that could not be imported.
 * @param {File[]} files
 * @param {string | null} mailbox
 */
async function importFiles(files, mailbox) {
  if (files.length === 0) return;
  const stopped = new AbortController();
  const bar = h('progress', { max: files.length, value: 0, 'aria-label': 'Imported files' });
  const state = h('p', { class: 'soft number', role: 'status' });
  const errors = h('ul', { class: 'import-errors' });
  const close = h('button', { class: 'button' }, 'Cancel');
  const dialog = openDialog('Import messages', state, bar, errors, h('div', { class: 'row' }, close));
  dialog.addEventListener('close', () => stopped.abort());
  let imported = 0;
  for (const [at, file] of files.entries()) {
    fill(state, `File ${count(at + 1)} of ${count(files.length)}`);
    try {
      await importFile(file, mailbox, stopped.signal);
      imported += 1;
    } catch (error) {
      if (stopped.signal.aborted) break;
      errors.append(h('li', { class: 'note bad' }, icon('warning'), h('span', {}, h('strong', {}, h('bdi', {}, visible(file.name))), ' ', h('bdi', {}, visible(api.sentence(error))))));
    }
    bar.value = at + 1;
  }
  const summary = imported === files.length ? `${plural(imported, 'message was', 'messages were')} imported.` : `${count(imported)} of ${plural(files.length, 'file was', 'files were')} imported.`;
  if (!errors.firstChild) dialog.close();
  if (!dialog.open) return void toast(summary);
  bar.hidden = true;
  fill(state, summary);
  fill(close, 'Close');
}

/**
 * @param {File} file
 * @param {string | null} mailbox
 * @param {AbortSignal} signal
 */
async function importFile(file, mailbox, signal) {
  if (!/\.(eml|raw)$/iu.test(file.name) && file.type !== 'message/rfc822') throw new Error('This is not an .eml file.');
  const recipients = mailbox === null ? findRecipients(await file.slice(0, HEADER_BYTES).text()) : [mailbox];
  if (recipients.length === 0) throw new Error('The message names no recipient. Open a mailbox and drop the file there.');
  for (const recipient of recipients) await api.addMessage(recipient, file, signal);
}

/**
 * Returns the recipients of a message: the mailbox that it was delivered to, or else the addresses in To and Cc.
 * @param {string} source The beginning of the message.
 */
function findRecipients(source) {
  const lines = source.split(/\r?\n\r?\n/u)[0].replace(/\r?\n[ \t]+/gu, ' ').split(/\r?\n/u);
  const addresses = (/** @type {RegExp} */ names) => lines.filter((line) => names.test(line)).flatMap((line) => line.slice(line.indexOf(':') + 1).match(ADDRESS) ?? []);
  const delivered = addresses(/^(?:delivered-to|x-original-to):/iu);
  return [...new Set(delivered.length > 0 ? delivered.slice(0, 1) : addresses(/^(?:to|cc):/iu))].slice(0, MAX_RECIPIENTS);
}
