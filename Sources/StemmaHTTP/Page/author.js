// The person who changes things here.
const name = "stemma.author";

export const author = () => localStorage.getItem(name) ?? "";
export const rememberAuthor = (value) => localStorage.setItem(name, value);
