/** The fields of `T`; those that may be undefined are optional. */
export type Defined<T> = {
  [Field in keyof T as undefined extends T[Field] ? never : Field]: T[Field];
} & {
  [Field in keyof T as undefined extends T[Field] ? Field : never]?: Exclude<T[Field], undefined>;
};

/** Returns a copy without `undefined` properties, which count as absent. */
export function defined<const T extends object>(value: T): Defined<T> {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as Defined<T>;
}
