# Stands in for Homebrew: installs a formula from the unpacked archive in the working directory, and runs its test.
#
#   ruby formula.rb FORMULA PREFIX SYSTEM PROCESSOR
#
# SYSTEM is macos or linux, PROCESSOR arm or intel. Prints the URL of the archive for them, and the command of the service, as
# JSON. It knows only what the formula of Restante uses, so another method is an error.

require "fileutils"
require "json"
require "pathname"

FORMULA, PREFIX, SYSTEM, PROCESSOR = ARGV

class Pathname
  # Moves files into this directory. A hash gives them other names.
  def install(*sources)
    sources.flatten.each do |source|
      names = source.is_a?(Hash) ? source : { source => File.basename(source) }
      names.each do |from, to|
        raise "the archive has no file #{from}" unless File.file?(from)

        mkpath
        FileUtils.mv(from, self / to)
      end
    end
    raise "nothing is installed in #{self}" if sources.flatten.empty?
  end
end

# The directories of a formula.
module Directories
  DIRECTORIES = {
    bin: "bin",
    opt_bin: "bin",
    var: "var",
    man1: "share/man/man1",
    doc: "share/doc/restante",
    bash_completion: "etc/bash_completion.d",
    zsh_completion: "share/zsh/site-functions",
    fish_completion: "share/fish/vendor_completions.d",
  }.freeze

  DIRECTORIES.each { |name, path| define_method(name) { Pathname.new(PREFIX) / path } }
end

class Formula
  include Directories

  class << self
    attr_reader :fields, :blocks

    def inherited(formula)
      super
      formula.instance_variable_set(:@fields, {})
      formula.instance_variable_set(:@blocks, {})
    end

    %i[desc homepage version license url sha256].each do |name|
      define_method(name) do |value|
        raise "#{name} is set twice" if fields.key?(name)

        fields[name] = value
      end
    end

    %w[macos linux].each { |name| define_method("on_#{name}") { |&block| block.call if name == SYSTEM } }
    %w[arm intel].each { |name| define_method("on_#{name}") { |&block| block.call if name == PROCESSOR } }
    %i[service test].each { |name| define_method(name) { |&block| blocks[name] = block } }
  end

  def version
    self.class.fields.fetch(:version)
  end

  def shell_output(command)
    output = `#{command}`
    raise "#{command} failed" unless $?.success?

    output
  end

  def assert_match(expected, actual)
    raise "#{actual.inspect} does not contain #{expected.inspect}" unless actual.include?(expected)
  end

  def system(*command)
    raise "#{command.join(" ")} failed" unless Kernel.system(*command.map(&:to_s), out: :err)
  end
end

# The settings of the service.
class Service
  include Directories

  attr_reader :command

  def run(command)
    @command = command.map(&:to_s)
  end

  def keep_alive(value) end

  def log_path(path) end

  def error_log_path(path) end
end

load FORMULA
formula = Restante.new
formula.install
formula.instance_eval(&Restante.blocks.fetch(:test))
service = Service.new
service.instance_eval(&Restante.blocks.fetch(:service))
puts JSON.generate(url: Restante.fields.fetch(:url), sha256: Restante.fields.fetch(:sha256), service: service.command)
