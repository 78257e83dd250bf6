export { required } from "../../required";
