export { wordsForEnded, wordsForFault, wordsForRefused, wordsForTyped } from "../../words";
