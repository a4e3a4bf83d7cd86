'use strict';

/** The words of a text, as the index and a question must both have them. */
module.exports = (text) => text.normalize('NFC').toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
