-- Appends a line to the notes of the test in one write.
return function(...)
  local parts = { ... }
  for i = 1, select("#", ...) do
    parts[i] = tostring(parts[i])
  end
  local file = assert(io.open("notes.txt", "a"))
  file:write(table.concat(parts, " "), "\n")
  file:close()
end
