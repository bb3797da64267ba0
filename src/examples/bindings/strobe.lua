-- Strobe from LuaJIT: profiles of the native code that a Lua program runs. Needs libstrobe-c.so.0 and nothing else.
--
--   local strobe = require("strobe")
--   strobe.profile("main", {["exporter.directory"] = "profiles"}, function()
--     strobe.label("endpoint", "/pay", serve)
--   end)
--
-- The loader finds the library where it finds others: in the system's folders, or by LD_LIBRARY_PATH. A call that fails is an error(),
-- whose text is the reason.
local ffi = require("ffi")
ffi.cdef [[
  int strobe_start(const char* options);
  int strobe_stop(void);
  int strobe_flush(void);
  int strobe_register_thread(const char* name);
  int strobe_unregister_thread(void);
  int strobe_push_text_label(const char* key, const char* text);
  int strobe_push_number_label(const char* key, int64_t number);
  int strobe_push_zone(const char* name);
  int strobe_pop_label(void);
  int strobe_last_status(char* text, size_t size);
]]
local STATUS_BYTES = 512
local library = ffi.load("libstrobe-c.so.0")
local strobe = {}

local function check(code)
  if code == 0 then return end
  local reason = ffi.new("char[?]", STATUS_BYTES)
  library.strobe_last_status(reason, STATUS_BYTES)
  error(ffi.string(reason), 3)
end

-- Calls `body`, then `finish`, also if `body` has failed.
local function finally(body, finish)
  local succeeded, reason = pcall(body)
  local code = finish()
  if not succeeded then error(reason, 0) end
  check(code)
end

-- A session around `body`, with the calling thread registered as `name`. Only the first session of a process may have options: fields
-- and values of src/docs/options.md.
function strobe.profile(name, options, body)
  local lines = {}
  for field, value in pairs(options or {}) do lines[#lines + 1] = field .. "=" .. tostring(value) end
  check(library.strobe_start(#lines > 0 and table.concat(lines, "\n") or nil))
  finally(function()
    check(library.strobe_register_thread(name))
    finally(body, library.strobe_unregister_thread)
  end, library.strobe_stop)
end

-- Samples of the calling thread have the label while `body` runs. `value` is a text or a whole number.
function strobe.label(key, value, body)
  if type(value) == "number" then
    check(library.strobe_push_number_label(key, value))
  else
    check(library.strobe_push_text_label(key, value))
  end
  finally(body, library.strobe_pop_label)
end

-- The calling thread is in a zone while `body` runs. Zones nest.
function strobe.zone(name, body)
  check(library.strobe_push_zone(name))
  finally(body, library.strobe_pop_label)
end

return strobe
