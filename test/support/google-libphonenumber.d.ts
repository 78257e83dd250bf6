/** The part of Google's own port that the comparison uses; it has no types. */
declare module "google-libphonenumber" {
  export interface Parsed {
    getCountryCode(): number | undefined;
  }
  export const PhoneNumberType: Readonly<Record<string, number>>;
  export const PhoneNumberFormat: { readonly E164: number; readonly INTERNATIONAL: number; readonly NATIONAL: number; readonly RFC3966: number };
  export class PhoneNumberUtil {
    static getInstance(): PhoneNumberUtil;
    getSupportedRegions(): string[];
    getSupportedGlobalNetworkCallingCodes(): number[];
    getExampleNumberForType(region: string, type: number): Parsed | null;
    getExampleNumberForNonGeoEntity(callingCode: number): Parsed | null;
    parse(number: string, region?: string): Parsed;
    format(number: Parsed, format: number): string;
    isValidNumber(number: Parsed): boolean;
    getNumberType(number: Parsed): number;
    getRegionCodeForNumber(number: Parsed): string | undefined;
  }
}
