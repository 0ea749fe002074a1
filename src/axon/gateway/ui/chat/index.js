import { session, signOut } from "../common/api.js";

const { tenant, key } = await session();
document.getElementById("who").textContent = `Signed in as ${tenant}, with the key ${key}.`;
document.getElementById("leave").addEventListener("click", signOut);
