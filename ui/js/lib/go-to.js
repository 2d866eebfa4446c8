// A field in which a mailbox is named to be opened: by its name, by an address, or by an address as mail programs copy it.

import * as paths from './paths.js';
import { address } from './format.js';
import { go } from './router.js';

/**
 * Opens the mailbox that is typed when the form is sent; a name that cannot be one is refused in the field itself.
 * @param {HTMLFormElement} form
 * @param {HTMLInputElement} input
 * @param {{ leaving?: () => void }} [then] What to do before the page changes.
 */
export function opens(form, input, { leaving } = {}) {
  // The browser would forbid to send a form that was refused once.
  form.noValidate = true;
  input.addEventListener('input', () => input.setCustomValidity(''));
  input.addEventListener('keydown', ({ key, isComposing }) => key === 'Escape' && !isComposing && input.blur());
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const name = address(input.value.trim()).address.trim();
    if (!name) return input.focus();
    if (paths.isStep(name) || !name.isWellFormed()) {
      input.setCustomValidity(`“${name.toWellFormed()}” cannot be a mailbox. Type a name such as james, or an address.`);
      input.reportValidity();
      return;
    }
    leaving?.();
    go(paths.mailbox(name));
  });
}
