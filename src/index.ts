export { type ApiKey, generateApiKey } from "./access/accounts.js";
export type {
  CustomerChange,
  CustomersOfStore,
  IssuedKey,
  NewCustomer,
  OfCustomer,
  StoredCustomer,
  StoredKey,
  StoredKeys,
} from "./access/customers/customers.js";
export type { DeadLetter } from "./callbacks/dead-letters.js";
export type { FlushReport } from "./callbacks/outbox.js";
export type { AuthenticationResponse, AuthenticationStatus, DeviceType } from "./contract/authentication.js";
export type { DeliveryStatus, DeliveryStatusData, DeliveryStatusEvent } from "./contract/callback.js";
export type { CheckResponse, CheckStatus } from "./contract/check.js";
export type { Conversion } from "./contract/conversion.js";
export type { ConfirmResult, DeliverResult, DestinationReason } from "./contract/delivery.js";
export type {
  AuthenticationResult,
  CheckRequest,
  CheckResult,
  ConfirmRequest,
  CreateAuthenticationRequest,
  DeliverRequest,
  ExplainRequest,
  HistoryRequest,
  LookupRequest,
  NumberRequest,
  RetryRequest,
  RetryResult,
  Standing,
  StartRequest,
  StatsRequest,
  VerificationCheckRequest,
  VerificationTarget,
} from "./contract/direct.js";
export type { CallerErrorCode, ErrorBody, ErrorCode } from "./contract/error.js";
export type { LineType, LookupResponse } from "./contract/lookup.js";
export type { RetryResponse, RetryStatus } from "./contract/retry.js";
export type {
  StartResult,
  VerificationCheckResult,
  VerificationOptions,
  VerificationResult,
  Verifications,
} from "./contract/verification.js";
export { createVerifier, type Verifier } from "./create-verifier.js";
export type { CountryCode } from "./domain/countries.js";
export type { Decision, RuleMode } from "./domain/decision.js";
export type { List, ListQuestion, ListSource } from "./domain/lists.js";
export type { MessageText, Recipient, RegisteredText } from "./domain/message.js";
export type { Cap, GrowingCap, Limits, Policy, PolicyOverride, SpamOverride, SpendCeiling } from "./domain/policy.js";
export type { Left } from "./domain/retry.js";
export type { IpInfo } from "./domain/signals.js";
export type { CellRule, JudgingRule, SpamCandidate, SpamRule, SpamVerdict } from "./domain/spam.js";
export type { CreditRule, SpamPolicy, SpamRuleSettings } from "./domain/spam-policy.js";
export { type ParsedPhoneNumber, type ParsePhoneNumberOptions, type PhoneNumberError, parsePhoneNumber } from "./domain/typed-number.js";
export { VerifierError, type VerifierErrorCode } from "./errors.js";
export type { HttpBody, HttpHandler, HttpRequest, HttpResponse } from "./http/message.js";
export { lazyVerifier } from "./lazy-verifier.js";
export type { RefusedRow, Stats, StatsRow } from "./observability/statistics.js";
export type { DiagnoseOptions, Finding } from "./operations/diagnose.js";
export type { Erasure } from "./operations/erase.js";
export type { ExplainedSend, Explanation, HistoryEntry } from "./operations/explain.js";
export type { CallOptions } from "./operations/operations.js";
export type { Ping, PingOptions } from "./operations/ping.js";
export type { RefusedRequests } from "./operations/refusals.js";
export type { Unlocking } from "./operations/unlock.js";
export type { CallbackOptions, CustomerConfig, ListOptions, MessageOptions, ReceiptOptions, TestNumber, VerifierOptions } from "./options/types.js";
export type { CallbackRequest, CallbackResponse, CallbackSender } from "./ports/callback-sender.js";
export type { Challenge } from "./ports/challenge.js";
export type { Clock } from "./ports/clock.js";
export type { Customer, Customers } from "./ports/customers.js";
export type {
  Alarm,
  AlarmEvent,
  CallbackEvent,
  CanceledEvent,
  CheckedEvent,
  ConfirmedEvent,
  CreatedEvent,
  FiredRule,
  OutageEvent,
  OutsidePart,
  ReceiptEvent,
  RefusedEvent,
  SentEvent,
  VerifierEvent,
} from "./ports/events.js";
export type { Logger } from "./ports/logger.js";
export type { LookupContext, LookupFacts, LookupProvider, LookupRequest as ProviderLookupRequest, LookupResult } from "./ports/lookup-provider.js";
export type { Receipt, ReceiptReading, ReceiptRequest, ReceiptSource } from "./ports/receipts.js";
export type {
  Channel,
  CodeMessage,
  CredentialCheck,
  Destination,
  Fallback,
  Feedback,
  Network,
  Plan,
  RegisteredIds,
  RouteStep,
  SendContext,
  SendOutcome,
  SmsSender,
} from "./ports/sms-sender.js";
export type {
  Change,
  Claim,
  CommitResult,
  Deletion,
  Expiry,
  MemberClaim,
  RecordWrite,
  Revocation,
  Store,
  StoredRecord,
  StoreInspection,
  SumClaim,
  SumParts,
  Tally,
} from "./ports/store.js";
export type { MetricReading, SpanFacts, Step, Telemetry } from "./ports/telemetry.js";
