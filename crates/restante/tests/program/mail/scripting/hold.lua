-- Waits until the test releases this name.
return function(name)
  local file = io.open(name)
  while not file do
    os.execute("sleep 0.01")
    file = io.open(name)
  end
  file:close()
end
