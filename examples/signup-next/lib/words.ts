export { wordsForEnded, wordsForError, wordsForRefused, wordsForTyped } from "../../words";
