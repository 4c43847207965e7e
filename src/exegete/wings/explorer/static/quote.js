// Quoting: text as Python and a shell read it.

export const quoted = (text) => JSON.stringify(text);
export const shell = (text) => `'${text.replaceAll("'", "'\\''")}'`;
/** A model as Python names it. @param {any} about */
export const sourced = ({ source }) => (source === null ? "None" : quoted(source));
