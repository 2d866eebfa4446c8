// A text field that opens a mailbox: by name, by address, or by `Display Name <address>` as mail programs copy it.

import * as paths from './paths.js';
import { address } from './format.js';
import { go } from './router.js';

/**
 * Opens the mailbox when the form is submitted. Reports an invalid name at the field.
 * @param {HTMLFormElement} form
 * @param {HTMLInputElement} input
 * @param {{ beforeOpen?: () => void }} [options] `beforeOpen` is called before the page changes.
 */
export function setUpMailboxField(form, input, { beforeOpen } = {}) {
  // Otherwise the browser blocks the submission after an invalid name.
  form.noValidate = true;
  input.addEventListener('input', () => input.setCustomValidity(''));
  input.addEventListener('keydown', ({ key, isComposing }) => key === 'Escape' && !isComposing && input.blur());
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const name = address(input.value.trim()).address.trim();
    if (!name) return input.focus();
    if (paths.isDotSegment(name) || !name.isWellFormed()) {
      input.setCustomValidity(`“${name.toWellFormed()}” is not a mailbox name. Enter a name such as james, or an address such as james@example.org.`);
      input.reportValidity();
      return;
    }
    beforeOpen?.();
    go(paths.mailbox(name));
  });
}
